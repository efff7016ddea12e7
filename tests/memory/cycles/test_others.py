"""The watch beside what else a process has: extensions in C, coroutines, tasklets, imports."""

import pytest

from tests.support import run_child

PROGRAM = """
import gc
from cpythonplus.memory import cycles

class Box:
    pass

{setup}

def leak():
    {leak}

with cycles.watch() as w:
    for _ in range(20):
        leak()
    gc.collect()
    found = w.take()
gc.collect()
print(sum(cycle.count for cycle in found), w.report.cycles, gc.garbage)
for cycle in found:
    print(cycle.cause.kind, cycle.cause.place.function, cycle.cause.variable, cycle.cause.what)
"""

CASES = {
    "numpy": (
        "import numpy",
        """array = numpy.array([Box(), None], dtype=object)
    view = array[::2]
    try:
        view[1000]
    except IndexError as error:
        kept = error""",
        "exception leak kept IndexError",
    ),
    "lxml": (
        "from lxml import etree",
        """tree = etree.fromstring("<a><b/><c/></a>")
    try:
        etree.fromstring("<a>")
    except etree.XMLSyntaxError as error:
        kept = error""",
        "exception leak kept XMLSyntaxError",
    ),
    "pydantic_core": (
        """from pydantic_core import SchemaValidator, ValidationError
validator = SchemaValidator({"type": "int"})""",
        """try:
        validator.validate_python("x")
    except ValidationError as error:
        kept = error""",
        "exception leak kept ValidationError",
    ),
    "asyncio": (
        """import asyncio
async def failing():
    await asyncio.sleep(0)
    raise ValueError
async def keeping():
    task = asyncio.ensure_future(failing())
    try:
        await task
    except ValueError as error:
        kept = error
    agen = numbers()
    await anext(agen)
async def numbers():
    me = numbers
    yield 1""",
        "asyncio.run(keeping())",
        "exception keeping kept ValueError",
    ),
}


@pytest.mark.parametrize("module", sorted(CASES))
def test_what_others_make(module: str) -> None:
    pytest.importorskip(module, reason=f"{module} is not there for this Python")
    setup, leak, expected = CASES[module]
    child = run_child(PROGRAM.format(setup=setup, leak=leak))
    first, *lines = child.out.splitlines()
    count, rest = first.split(" ", 1)
    assert int(count) >= 20
    assert rest == "() []", "what was found was cleared"
    assert any(line.startswith(expected) for line in lines), child.out
    assert child.err == ""


@pytest.mark.needs_gil
def test_tasklets_that_are_parked_and_killed() -> None:
    child = run_child(
        PROGRAM.format(
            setup="from cpythonplus.tasklets import channel, run, tasklet",
            leak="""def wait(own):
        try:
            raise ValueError
        except ValueError as error:
            kept = error
            own.receive()
    own = channel()
    parked = tasklet(wait)(own)
    run()
    parked.kill()""",
        )
    )
    assert int(child.out.split()[0]) >= 20, child.out
    assert "exception leak.<locals>.wait kept ValueError" in child.out
    assert child.err == ""
