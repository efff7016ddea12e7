"""Programs that hypothesis writes stop at a random place, and go on in a fresh process.

    python -m tools.pickle_property [--programs N] [--seed N]

A program is made of pieces: generators, closures, `with`, `match`, decorators, partials, iterators
of all kinds, context managers, dataclasses, enums, sentinels, decimal contexts. It runs
undisturbed; then up to its k-th stop, is pickled (by name, by value, by `dumps`, as a copy or a
deep copy), and goes on in a fork of a process that has never run it. Both must log the same. A
pickle that is refused counts as such, with its words. A failing program is shrunk by hypothesis and
printed.
"""

import argparse
import copy
import os
import pickle
import random
import re
import signal
import struct
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tools import pickle_pieces
from tools.pickle_fuzz import Program

MODULE = "a_pickled_program"
MODES = ("name", "value", "dumps", "copy", "deepcopy", "original")
CRASHED = "crashed"
LIMIT_S = 5


class Written(Program):
    """A program whose choices hypothesis makes."""

    def __init__(self, choices: random.Random) -> None:
        super().__init__(0)
        self.random = choices
        self.budget = choices.randint(1, 7)

    def expression(self, depth: int = 2) -> str:
        if depth and self.random.random() < 0.4:
            text = self.random.choice(pickle_pieces.EXPRESSIONS)
            return "(" + self.filled(text, depth - 1) + ")"
        return super().expression(min(depth, 1))

    def iterable(self) -> str:
        if self.random.random() < 0.6:
            return self.filled(self.random.choice(pickle_pieces.ITERABLES))
        return super().iterable()

    def filled(self, text: str, depth: int = 0) -> str:
        """Replace $S by a stop, $E by an expression, $I by an iterable, $n by a number."""
        unique = self.fresh("v")

        def one(found: re.Match[str]) -> str:
            match found[0]:
                case "$S":
                    return self.stop()
                case "$E":
                    return self.expression(depth) if depth > 0 else self.atom()
                case "$I":
                    return self.iterable()
                case "$n":
                    return str(self.random.randint(1, 4))
            return unique

        return re.sub(r"\$[SEInu]", one, text)

    def piece(self) -> None:
        text = self.filled(self.random.choice(pickle_pieces.STATEMENTS), 1)
        for line in text.strip("\n").splitlines():
            bare = line.lstrip()
            indent = (len(line) - len(bare)) // 4
            self.depth += indent
            if bare == "BODY":
                self.body()
            else:
                self.add(bare)
            self.depth -= indent

    def statement(self) -> None:
        if self.budget > 0 and self.depth < 6 and self.random.random() < 0.65:
            self.budget -= 1
            self.piece()
        else:
            super().statement()

    def source(self) -> str:
        return "from tools.pickle_pieces import *\n" + super().source()


# ---- in forks of a process that has run no program ----------------------------------------------


def _module(source: str, mode: str) -> Any:
    module = ModuleType(MODULE)
    if mode != "value":  # then nobody can import it elsewhere, and its globals travel
        module.__spec__ = ModuleSpec(MODULE, None)
    sys.modules[MODULE] = module
    exec(compile(source, f"<{MODULE}>", "exec"), vars(module))
    return module


def _ran(task: Any, log: list[Any], stop_at: int) -> tuple[bool, list[Any], int]:
    """Let it go on; return whether it has ended, its log, and the number of stops passed."""
    from cpythonplus import tasklets

    pickle_pieces.stop_at(stop_at)
    task.insert()
    tasklets.run()
    return not task.alive, log, pickle_pieces.passed()


def _dumped(both: Any, mode: str) -> bytes:
    from cpythonplus import tasklets

    if mode == "dumps":
        return tasklets.dumps(both)
    with tasklets.pickling(code="value" if mode == "value" else "name"):
        return pickle.dumps(both)


def _first(source: str, mode: str, stop: int) -> Any:
    """Run it undisturbed and up to a stop; return what it logs, and the pickle or the end."""
    from cpythonplus import tasklets

    module = _module(source, mode)
    log: list[Any] = []
    task = tasklets.tasklet(module.program_0)(log)
    task.remove()
    _, expected, stops = _ran(task, log, 0)
    module = _module(source, mode)
    log = []
    task = tasklets.tasklet(module.program_0)(log)
    task.remove()
    ended, _, _ = _ran(task, log, stop % stops + 1 if stops else 0)
    if ended:
        return expected, "ended", log
    try:
        if mode in ("copy", "deepcopy"):
            new, log = copy.deepcopy((task, log)) if mode == "deepcopy" else (copy.copy(task), log)
            # Not the list itself: the original is killed at the end of this function.
            return expected, "ended", _ran(new, log, 0)[1][:]
        data = _dumped((task, log), mode)
    except (pickle.PicklingError, TypeError, AttributeError, copy.Error) as error:
        _ran(task, log, 0)
        return expected, "refused", (f"{type(error).__name__}: {error}", log)
    if mode == "original":
        return expected, "ended", _ran(task, log, 0)[1]
    return expected, "stopped", data


def _then(source: str, mode: str, data: bytes, stop: int) -> Any:
    """Load it and let it go on, to its end or to another stop."""
    if mode != "value":
        _module(source, mode)
    task, log = pickle.loads(data)
    ended, log, _ = _ran(task, log, stop)
    if ended:
        return "ended", log
    try:
        return "stopped", _dumped((task, log), mode)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        _ran(task, log, 0)
        return "refused", (f"{type(error).__name__}: {error}", log)


def _in_fork(function: Callable[..., Any], *arguments: Any) -> Any:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        signal.alarm(LIMIT_S)
        try:
            answer: Any = function(*arguments)
        except BaseException:  # noqa: BLE001  # it is told
            answer = CRASHED, traceback.format_exc()[-1500:]
        try:
            data = pickle.dumps(answer)
        except Exception as error:  # noqa: BLE001
            data = pickle.dumps((CRASHED, f"no answer: {error!r}"))
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(data)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status or not data:
        return CRASHED, f"status {status}"
    return pickle.loads(data)


def difference(source: str, mode: str, stops: tuple[int, int]) -> tuple[str | None, str]:
    """Return what is wrong, or None, and how it ended."""
    first = _in_fork(_first, source, mode, stops[0])
    if first[0] is CRASHED or first[0] == CRASHED:
        # Hypothesis writes programs that do not end, too.
        if first[1] == f"status {signal.SIGALRM.value}":
            return None, "endless"
        return f"{CRASHED}: {first[1]}", ""
    expected, kind, rest = first
    hop = 0
    while kind == "stopped":
        hop += 1
        kind, rest = _in_fork(_then, source, mode, rest, stops[1] if hop == 1 else 0)
    if kind == CRASHED:
        return f"{CRASHED} going on: {rest}", ""
    words, log = rest if kind == "refused" else ("", rest)
    if repr(log) != repr(expected):
        return f"log {log} instead of {expected} ({kind} {words})", ""
    return None, f"refused: {words}" if kind == "refused" else kind


def serve() -> None:
    """Answer questions until the pipe ends."""
    import cpythonplus.tasklets._pickling.reducing  # noqa: F401  # what the first pickle loads

    while head := sys.stdin.buffer.read(4):
        question = pickle.loads(sys.stdin.buffer.read(*struct.unpack("I", head)))
        data = pickle.dumps(difference(*question))
        sys.stdout.buffer.write(struct.pack("I", len(data)) + data)
        sys.stdout.buffer.flush()


class Server:
    """A process that has run no program, whose forks run them."""

    def __init__(self) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "tools.pickle_property", "--serve"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, *question: Any) -> tuple[str | None, str]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        data = pickle.dumps(question)
        self.process.stdin.write(struct.pack("I", len(data)) + data)
        self.process.stdin.flush()
        (size,) = struct.unpack("I", self.process.stdout.read(4))
        return pickle.loads(self.process.stdout.read(size))  # type: ignore[no-any-return]

    def close(self) -> None:
        with self.process:
            pass


class DiffersError(AssertionError):
    """A program that goes on otherwise."""


def check_programs(count: int, first_seed: int, counts: Counter[str]) -> str | None:
    """Check programs; return the smallest that differs, or None."""
    server = Server()
    text = ""

    @seed(first_seed)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        derandomize=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(
        st.randoms(use_true_random=False),
        st.sampled_from(MODES),
        st.integers(0, 60),
        st.integers(0, 9),
    )
    def goes_on(choices: random.Random, mode: str, stop: int, second: int) -> None:
        nonlocal text
        source = Written(choices).source()
        wrong, how = server.ask(source, mode, (stop, second))
        counts["programs"] += 1
        if wrong is not None:
            text = f"{source}\n# mode {mode}, stop {stop}, then {second}\n# {wrong}"
            raise DiffersError(wrong)
        counts[re.sub(r"\d+|0x[0-9a-f]+", "N", how)] += 1

    try:
        goes_on()
    except DiffersError:
        return text
    except BaseExceptionGroup:  # several, each of which hypothesis has shrunk
        return text
    finally:
        server.close()
    return None


def main(arguments: list[str] | None = None) -> int:
    """Check programs; 1 if one differs."""
    parser = argparse.ArgumentParser(prog="pickle_property", description=(__doc__ or "")[:70])
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--try", dest="file", help="a program that was printed")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        serve()
        return 0
    if options.file:
        source = Path(options.file).read_text("utf-8")
        found = re.search(r"^# mode (\w+), stop (\d+), then (\d+)", source, re.MULTILINE)
        assert found is not None
        print(*Server().ask(source, found[1], (int(found[2]), int(found[3]))))
        return 0
    counts: Counter[str] = Counter()
    wrong = None
    with suppress(KeyboardInterrupt):  # it tells how far it came
        wrong = check_programs(options.programs, options.seed, counts)
    for words, count in counts.most_common(40):
        print(f"{count:9,} {words[:150]}")
    if wrong is not None:
        print(wrong)
    return 1 if wrong is not None else 0


if __name__ == "__main__":
    sys.exit(main())
