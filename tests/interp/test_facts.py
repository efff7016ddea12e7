"""What is known of this interpreter's private structures is proven before it is used."""

import json
import sys
from textwrap import dedent

import pytest

from cpythonplus import _interp
from tests.cli.support import MODULE, execute
from tests.support import PYMALLOC, SANITIZED, run_child

pytestmark = pytest.mark.needs_gil


def found(program: str, **environment: str) -> dict[str, str]:
    child = run_child(f"import json\n{dedent(program)}", env={**PYMALLOC, **environment})
    result: dict[str, str] = json.loads(child.out)
    return result


STATES = "from cpythonplus import _interp\nprint(json.dumps({f.name: f.state for f in %s}))"


def test_each_is_proven_here() -> None:
    states = found(STATES % "_interp.facts()")
    here = sys.version_info[:2]
    expected = {
        fact.name: "proven" if fact.since <= here <= fact.until else "absent"
        for fact in _interp.facts(ask=False)
    }
    assert len(expected) == 16
    if SANITIZED:  # its allocator takes the place of pymalloc
        expected |= {"pools": "refused", "arenas": "refused"}
    assert states == expected


def test_a_start_asks_for_none() -> None:
    """Proofs cost: they wait for the first feature that needs them."""
    asked = found(
        "import cpythonplus.gil, cpythonplus.memory, cpythonplus.prefork, cpythonplus.threads\n"
        + STATES % "_interp.facts(ask=False)"
    )
    assert set(asked.values()) <= {"not asked", "absent"}


def test_a_feature_asks_for_what_it_needs() -> None:
    asked = found("import cpythonplus.tasklets\n" + STATES % "_interp.facts(ask=False)")
    proven = {name for name, state in asked.items() if state == "proven"}
    assert {"thread-state", "frames", "operands"} <= proven
    assert not proven & {"immortal", "pools", "arenas", "dict-keys"}


def test_a_walk_over_the_heap_asks_before_it_begins() -> None:
    """A proof makes objects, which nothing may do while the collector's lists are gone along."""
    asked = found(
        "from cpythonplus import _native\n_native.memory_referrers_of(bytearray)\n"
        + STATES % "_interp.facts(ask=False)"
    )
    during = {"gc-header", "gc-rings", "frames", "dict-keys", "inline-values", "object-sizes"}
    assert {asked[name] for name in during} == {"proven"}


def test_an_allocator_of_its_own() -> None:
    states = found(STATES % "_interp.facts()", PYTHONMALLOC="malloc")
    refused = {name for name, state in states.items() if state == "refused"}
    assert refused == {"pools", "arenas"}


def test_pools_that_each_have_one_free_block() -> None:
    """As in a process that has run for long: what is taken comes from one pool after the other."""
    states = found(
        """
        from cpythonplus import _interp, memory
        pools = {}
        for number in range(31 * 200):
            data = bytes(512 - 33)
            pools.setdefault(id(data) >> 14, []).append(data)
        for pool in pools.values():
            if len(pool) == 31:
                pool.pop()
        states = {f.name: f.state for f in _interp.facts()}
        notes = [step.note for step in memory.trim().steps if step.name == "pools"]
        print(json.dumps({"pools": states["pools"], "notes": str(notes)}))
        """
    )
    assert states["pools"] == ("refused" if SANITIZED else "proven")
    assert SANITIZED or "skipped" not in states["notes"]


def test_an_exception_that_is_handled_stays() -> None:
    child = run_child(
        """
        import sys
        from cpythonplus import _interp
        try:
            raise KeyError(1)
        except KeyError as error:
            _interp.facts()
            print(sys.exc_info()[1] is error)
        """,
        env=PYMALLOC,
    )
    assert child.out == "True\n"


def test_a_generator_that_handles_none_gets_none() -> None:
    """Its caller's exception is not its own, and would stay with it."""
    child = run_child(
        """
        import sys
        from cpythonplus import _interp

        def generator():
            _interp.facts()
            yield
            yield sys.exc_info()[1]

        try:
            raise KeyError(1)
        except KeyError:
            suspended = generator()
            next(suspended)
        print(next(suspended))
        """,
        env=PYMALLOC,
    )
    assert child.out == "None\n"


# A call of C whose last step has signal handlers run at the next instruction, be it of a proof.
INTERRUPTED = """
import functools, operator, signal, sys, _thread
from cpythonplus import _native

def interrupt(number, frame):
    raise TimeoutError("of the program")

signal.signal(signal.SIGINT, interrupt)

def interrupted(function, *args):
    try:
        calls = _thread.interrupt_main, functools.partial(function, *args)
        list(map(operator.call, calls))
    except TimeoutError as error:
        print(error)
"""


@pytest.mark.parametrize("fact", [fact.name for fact in _interp.facts(ask=False)])
def test_a_signal_handler_raises_meanwhile(fact: str) -> None:
    """It raises in the program, and says nothing about the structure."""
    child = run_child(
        INTERRUPTED
        + dedent(
            f"""
            interrupted(_native.interp_facts, ("{fact}",))
            print(*(row[6] for row in _native.interp_facts(("{fact}",)) if row[0] == "{fact}"))
            """
        ),
        env=PYMALLOC,
    )
    assert child.out in ("of the program\nproven\n", "of the program\nabsent\n") or SANITIZED


def test_a_signal_handler_raises_in_the_proof_that_frames_can_be_left() -> None:
    child = run_child(
        INTERRUPTED
        + dedent(
            """
            from cpythonplus import tasklets

            class Waits:
                def __call__(self):
                    tasklets.schedule_remove()

            first, second = tasklets.tasklet(Waits())(), tasklets.tasklet(Waits())()
            tasklets.run()
            interrupted(tasklets.trim_stacks)
            tasklets.tasklet(Waits())()
            tasklets.run()
            print(tasklets.trim_stacks())
            """
        )
    )
    assert child.out == "of the program\n1\n"  # the other two have left their stacks


@pytest.mark.parametrize("fact", ["frames", "thread-state", "instrumentation"])
def test_no_room_for_the_proof(fact: str) -> None:
    """A proof without calls left tells nothing: the next question proves it."""
    child = run_child(
        f"""
        from cpythonplus import _native
        said = []

        def deep():
            try:
                deep()
            except RecursionError:
                said.append(_native.interp_facts(("{fact}",)))

        def state(rows):
            return [row[6] for row in rows if row[0] == "{fact}"][0]

        deep()
        print(state(said[0]), state(_native.interp_facts(("{fact}",))))
        """,
        env=PYMALLOC,
    )
    assert child.out in ("not asked proven\n", "absent absent\n")


class TestCommand:
    def test_table(self) -> None:
        done = execute([*MODULE, "facts"], env=PYMALLOC)
        assert (done.status, done.err) == (0, "")
        lines = done.out.splitlines()
        assert len(lines) == 16
        assert all(line.split()[1] in ("proven", "absent") for line in lines)

    def test_json(self) -> None:
        done = execute([*MODULE, "facts", "--json"], env=PYMALLOC)
        rows = json.loads(done.out)
        assert rows[0].keys() >= {"name", "since", "until", "what", "proof", "features", "state"}

    def test_what_is_refused_is_said(self) -> None:
        done = execute([*MODULE, "facts"], env={"PYTHONMALLOC": "malloc"})
        assert done.status == 1
        assert "objects do not come from pymalloc here" in done.out
        shown = execute([*MODULE, "run", "--show", "-c", ""], env={"PYTHONMALLOC": "malloc"})
        assert "refused     pools: objects do not come from pymalloc here" in shown.out

    def test_wrong_words(self) -> None:
        done = execute([*MODULE, "facts", "--jsno"])
        assert done.status == 2
        assert done.err.count("\n") == 1
