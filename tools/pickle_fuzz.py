"""Programs that stop at random points, pickled at every stop and resumed in another process.

    python -m tools.pickle_fuzz --programs 20000 [--first-seed N] [--jobs N]

Each seed is a program: functions that loop, raise, handle, yield and call each other, and stop in
the middle of all that. It is run undisturbed; then where at every stop the tasklet is taken off its
C stack (trim_stacks()); then where at every stop it is pickled, and goes on in the other one of two
processes. All have to log the same. Every third program travels by value, and its module is not in
the second process at all.

It prints one line for each program that fails, with its seed, and a summary. Status 1 if any did.
"""

import argparse
import pickle
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

HEAD = """\
import contextlib, itertools, sys
from collections import deque
from cpythonplus.tasklets import schedule_remove as S
RESULTS = []
class E(Exception): pass
class F(Exception): pass
class Manager:
    def __init__(self, log): self.log = log
    def __enter__(self):
        self.log.append("enter")
        return 3
    def __exit__(self, kind, value, traceback):
        self.log.append(("exit", kind and kind.__name__))
        return kind is F
class Base:
    def method(self, x): return S(x) + 1
class Derived(Base):
    def __init__(self, x): self.x = S(x)
    def method(self, x): return super().method(x) + self.x
    @property
    def twice(self): return self.x * 2
    @staticmethod
    def static(x, *more, k=1): return x + S(k) + len(more)
@contextlib.contextmanager
def managed(log):
    log.append("in")
    try: yield 4
    finally: log.append("out")
def handled():
    kind, value, _ = sys.exc_info()
    chain = []
    while value is not None and len(chain) < 4:
        chain.append(type(value).__name__)
        value = value.__cause__ or value.__context__
    return chain
"""

DEEPEST = 7
ITERABLES = (
    "range({n})",
    "[1, 2, 3][:{n}]",
    "(4, 5, 6)",
    "{{1: 2, 3: 4}}",
    "{{1: 2, 3: 4}}.values()",
    "[k + v for k, v in {{1: 2, 5: 6}}.items()]",
    "deque([1, 2, {n}])",
    "b'ab'",
    "bytearray(b'cd')",
    "map(abs, [-1, -{n}])",
    "filter(None, [0, 1, {n}])",
    "reversed([1, {n}])",
    "iter(range(1, {n} + 1))",
    "[a * b for a, b in zip([1, 2], (3, {n}))]",
    "[i + x for i, x in enumerate([3, {n}])]",
    "sorted({{{n}, 7}})",
    "[len(c) for c in 'xy']",
    "itertools.chain([1], (2, {n}))",
    "itertools.islice(itertools.count({n}), 1, 6, 2)",
    "itertools.islice(itertools.cycle([1, {n}]), 5)",
    "itertools.accumulate([1, 2, {n}], max)",
    "itertools.takewhile(bool, [1, {n}, 0, 1])",
    "itertools.dropwhile(bool, [1, 0, {n}])",
    "itertools.filterfalse(None, [1, 0])",
    "itertools.compress([1, {n}, 3], [1, 0, 1])",
    "itertools.starmap(max, [(1, {n}), (3, 2)])",
    "itertools.repeat({n}, 2)",
    "[a * b for a, b in itertools.product([1, 2], (3, {n}))]",
    "map(sum, itertools.permutations([1, 2, {n}], 2))",
    "map(sum, itertools.combinations([1, 2, {n}], 2))",
    "map(sum, itertools.zip_longest([1], [2, {n}], fillvalue=0))",
    "map(sum, itertools.pairwise([1, 2, {n}]))",
    "itertools.tee([1, 2, {n}])[1]",
)


class Program:
    """The source of the function that a seed names."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.stops = self.names = 0
        self.lines: list[str] = []
        self.depth = 1
        self.budget = self.random.randint(3, 12)
        self.loops = 0
        self.tries = 0
        self.generators: list[str] = []

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def add(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def block(self, head: str, *makers: Callable[[], None]) -> None:
        self.add(head)
        self.depth += 1
        for maker in makers:
            maker()
        self.depth -= 1

    # ---- expressions: ints ----

    def stop(self) -> str:
        self.stops += 1
        return f"S({self.random.randint(0, 9)})"

    def atom(self) -> str:
        return self.random.choice((str(self.random.randint(0, 9)), "x", "y", self.stop()))

    def expression(self, depth: int = 2) -> str:
        if depth == 0:
            return self.atom()
        a, b = self.expression(depth - 1), self.expression(depth - 1)
        calls = [
            f"add({a}, {b})",
            f"add(b={a}, a={b})",
            f"add(*[{a}, {b}])",
            f"add(**{{'a': {a}, 'b': {b}}})",
            f"Derived({a}).method({b})",
            f"Derived.static({a}, 1, k={b})",
            f"down({self.random.randint(0, 4)}, {a})",
            f"bump({a})",
            f"(lambda v, w=1: v + {self.stop()} + w)({a})",
            f"sum([q + {b} for q in (1, {a})])",
            f"len({{q + {self.stop()} for q in range(2)}})",
            f"sum({{q: {a} for q in range(2)}}.values())",
            f"len(f'{{{self.stop()}}}-{{x}}')",
            f"max({a}, {b})",
            f"int({a} < {b} < 5)",
            f"({a} if {b} else {self.atom()})",
            f"[{a}, {b}, x][1]",
            f"({a} and {b} or {self.atom()})",
        ]
        return self.random.choice((f"({a} + {b})", f"({a} * 2 - {b})", *calls))

    def iterable(self) -> str:
        text = self.random.choice(ITERABLES).format(n=self.random.randint(1, 3))
        if self.random.random() < 0.35:
            return f"numbers({self.random.randint(1, 3)}, log)"
        return text

    # ---- statements ----

    def log(self) -> None:
        self.add(f"log.append({self.random.choice(('x', 'y', 'handled()', '(x, y)'))})")

    def assign(self) -> None:
        target = self.random.choice("xy")
        operator = self.random.choice(("=", "+=", "="))
        walrus = self.random.random() < 0.1
        value = f"(z := {self.atom()}) + z + {self.stop()}" if walrus else self.expression()
        self.add(f"{target} {operator} {value}")
        self.add(f"{target} %= 1009")

    def loop(self) -> None:
        name = self.fresh("i")
        self.loops += 1
        kind = self.random.random()
        if kind < 0.2:
            count = self.fresh("n")
            self.add(f"{count} = 0")
            self.block(
                f"while {count} < {self.random.randint(1, 3)}:",
                lambda: self.add(f"{count} += 1"),
                self.body,
            )
        else:
            self.block(f"for {name} in {self.iterable()}:", lambda: self.add(f"x += {name}"))
            self.depth += 1
            self.body()
            self.depth -= 1
        if self.random.random() < 0.3:
            self.block("else:", self.log)
        self.loops -= 1

    def branch(self) -> None:
        self.block(f"if {self.expression(1)} % 2:", self.body)
        if self.random.random() < 0.5:
            self.block("else:", self.body)

    def handler(self) -> None:
        self.log()
        self.body()
        if self.random.random() < 0.3 and self.tries:
            self.add("raise" if self.random.random() < 0.5 else f"raise E({self.atom()}) from None")

    def attempt(self) -> None:
        group = self.random.random() < 0.15
        self.tries += 1

        def inner() -> None:
            self.body()
            if group:
                self.add(f"raise ExceptionGroup('g', [E({self.atom()}), F(1)])")
            elif self.random.random() < 0.7:
                kind = self.random.choice("EF")
                self.block(
                    f"if {self.expression(1)} % 3:",
                    lambda: self.add(f"raise {kind}({self.atom()})"),
                )

        self.block("try:", inner)
        self.tries -= 1
        star = "*" if group else ""
        name = self.fresh("e")
        if group:
            self.block(f"except* E as {name}:", self.log, lambda: self.add(f"y += {self.stop()}"))
            self.block("except* F:", self.log)
        else:
            self.block(f"except E{star} as {name}:", self.handler)
            self.block("except F:", self.handler)
            if self.random.random() < 0.3:
                self.block("else:", self.log)
        if self.random.random() < 0.4:
            self.block("finally:", self.log, lambda: self.add(f"y += {self.stop()}"))

    def context(self) -> None:
        manager = self.random.choice(("Manager(log)", "managed(log)", "contextlib.suppress(F)"))
        if self.tries:

            def inner() -> None:
                self.body()
                self.add(f"if x % 5 == 1: raise {self.random.choice('EF')}(x)")

            self.block(f"with {manager}:", inner)
        else:
            self.block(f"with {manager}:", self.body)

    def match(self) -> None:
        subject = self.random.choice(
            (f"[{self.expression(1)}, y]", self.expression(1), "(x, (y, 1))")
        )
        self.block(f"match {subject}:")
        self.depth += 1
        self.block("case [a, b] if a > 3:", lambda: self.add(f"x += {self.stop()} + int(a == b)"))
        self.block("case (a, (b, c)):", lambda: self.add(f"y += {self.stop()} + c"))
        self.block("case int(a) if a > 4:", lambda: self.add("y += a"))
        self.block("case _:", self.log)
        self.depth -= 1

    def generator_value(self) -> None:
        name = self.fresh("g")
        self.add(f"{name} = numbers({self.random.randint(2, 3)}, log)")
        self.assign()
        self.add(f"x += sum(q for q in [1, 2]) + {self.stop()}")
        self.block(f"for v in {name}:", lambda: self.add(f"y += v + {self.stop()}"))

    def leave(self) -> None:
        if self.loops and self.random.random() < 0.6:
            self.add(f"if x % 4 == 1: {self.random.choice(('break', 'continue'))}")
        else:
            self.add("if x % 50 == 49: return log.append('returned')")

    def unbound(self) -> None:
        name = self.fresh("u")
        self.add(f"{name} = {self.stop()}")
        self.add(f"del {name}")
        self.assign()

    def body(self) -> None:
        for _ in range(self.random.randint(1, 2)):
            self.statement()

    def statement(self) -> None:
        self.budget -= 1
        if self.budget < 0 or self.depth > DEEPEST:
            self.assign()
            return
        choices: Sequence[tuple[int, Callable[[], None]]] = (
            (6, self.assign),
            (2, self.log),
            (4, self.loop),
            (3, self.branch),
            (4, self.attempt),
            (2, self.context),
            (1, self.match),
            (2, self.generator_value),
            (1, self.leave),
            (1, self.unbound),
        )
        weights, makers = zip(*choices, strict=True)
        self.random.choices(makers, weights)[0]()

    def source(self) -> str:
        """The function `program_SEED(log)`, and those that it calls."""
        self.block(
            "def numbers(n, log):",
            lambda: self.block("for k in range(n):", lambda: self.add(f"yield k + {self.stop()}")),
            lambda: self.add("got = yield from pair(log)"),
            lambda: self.add("if got: log.append(got)"),
        )
        self.block(
            "def pair(log):",
            lambda: self.block(
                "try:", lambda: self.add(f"yield {self.stop()}"), lambda: self.add("raise E(1)")
            ),
            lambda: self.block(
                "except E:",
                lambda: self.add(f"yield {self.stop()}"),
                lambda: self.add("log.append(handled())"),
            ),
            lambda: self.add(f"return {self.stop()}"),
        )
        self.block("def add(a, b=2): ", lambda: self.add(f"return a + {self.stop()} - b"))
        self.block(
            "def down(n, v):",
            lambda: self.add(f"return v + {self.stop()} if n <= 0 else 1 + down(n - 1, v)"),
        )
        self.add("total = 0")
        self.block(
            "def bump(v):",
            lambda: self.add("nonlocal total"),
            lambda: self.add(f"total += v + {self.stop()}"),
            lambda: self.add("return total"),
        )
        self.add("x, y = 1, 2")
        while self.budget > 0:
            self.statement()
        self.add("log += [x, y, total]")
        body = "\n".join(self.lines)
        return (
            f"def inner_{self.seed}(log):\n{body}\n"
            f"def program_{self.seed}(log):\n"
            f"    try: inner_{self.seed}(log)\n"
            f"    except BaseException as error: log.append(type(error).__name__)\n"
            f"    RESULTS.append(log)\n"
        )


# ---- the processes ------------------------------------------------------------------------------


def _send(pipe: IO[bytes], message: Any) -> None:
    pickle.dump(message, pipe)
    pipe.flush()


def _stopped(task: Any, results: list[Any], *, by_value: bool) -> tuple[str, Any]:
    """Let it go on up to its next stop, and tell how that ended."""
    from cpythonplus import tasklets

    results.clear()
    task.insert()
    tasklets.run()
    if not task.alive:
        return "done", results.pop()
    try:
        with tasklets.pickling(code="value" if by_value else "name"):
            return "stopped", pickle.dumps(task)
    except pickle.PicklingError as error:
        return "refused", str(error)


def child(folder: str) -> None:
    """Answer (name of the module, seed, by value, pickle or None) until the pipe ends."""
    from cpythonplus import tasklets

    sys.path.insert(0, folder)
    while True:
        try:
            name, seed, by_value, data = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            if data is None:
                module = __import__(name)
                task = tasklets.tasklet(getattr(module, f"program_{seed}"))([])
                task.remove()
                results = module.RESULTS
            else:
                task = pickle.loads(data)
                results = _results(name, by_value=by_value)
            answer = _stopped(task, results, by_value=by_value)
        except Exception as error:  # noqa: BLE001  # whatever it was, it is told
            answer = "failed", f"{type(error).__name__}: {error}"
        _send(sys.stdout.buffer, answer)


def _results(name: str, *, by_value: bool) -> list[Any]:
    del by_value
    return vars(sys.modules.get(name) or __import__(name))["RESULTS"]  # type: ignore[no-any-return]


class Processes:
    """Two that resume each other's tasklets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.both = [self.start(), self.start()]

    def start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tools.pickle_fuzz", "--child", str(self.folder)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, which: int, message: Any) -> tuple[str, Any]:
        process = self.both[which]
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            _send(process.stdin, message)
            return pickle.load(process.stdout)  # type: ignore[no-any-return]
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            with process:
                status = process.wait()
            self.both[which] = self.start()
            return "failed", f"the process ended with status {status}"

    def close(self) -> None:
        for process in self.both:
            with process:  # closes its pipes, which ends it
                pass


def run_here(module: Any, seed: int, at_stop: Callable[[Any, int], None]) -> tuple[int, Any]:
    """How often the program stops, and its log."""
    from cpythonplus import tasklets

    task = tasklets.tasklet(getattr(module, f"program_{seed}"))([])
    tasklets.run()
    stops = 0
    while task.alive:
        stops += 1
        at_stop(task, stops)
        task.insert()
        tasklets.run()
    return stops, module.RESULTS.pop()


def cool(task: Any, stop: int) -> None:
    """Take it off its C stack; at some stops have it put on one again."""
    from cpythonplus import tasklets

    tasklets.trim_stacks()
    if stop % 5 == 0:
        assert task.frame is not None


def check(
    processes: Processes, name: str, module: Any, seed: int, counts: Counter[str]
) -> str | None:
    """Run one program both ways; what is wrong, or None."""
    by_value = seed % 3 == 0
    stops, expected = run_here(module, seed, lambda _task, _stop: None)
    counts["stops"] += stops
    cold = run_here(module, seed, cool)
    if cold != (stops, expected):
        return f"taken off its C stack: {cold} instead of {stops, expected}"
    data, which = None, 0
    for hop in range(stops + 1):
        kind, data = processes.ask(which, (name, seed, by_value, data))
        which = 1 - which
        if kind == "refused":
            counts[f"refused: {' '.join(w for w in str(data).split() if not w.isdigit())}"] += 1
            return None
        if kind == "failed":
            return f"hop {hop} of {stops}: {data}"
        if kind == "done":
            return None if data == expected else f"log {data} instead of {expected}"
    return f"it stopped more than {stops} times"


def run_programs(
    seeds: Sequence[int], *, batch: int = 50
) -> tuple[list[tuple[int, str]], Counter[str]]:
    """Return the seeds that fail, with what is wrong, and counts."""
    failures: list[tuple[int, str]] = []
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        processes = Processes(Path(folder))
        sys.path.insert(0, folder)
        try:
            for start in range(0, len(seeds), batch):
                chosen = seeds[start : start + batch]
                name = f"fuzzed_{chosen[0]}"
                text = HEAD + "".join(Program(seed).source() for seed in chosen)
                Path(folder, f"{name}.py").write_text(text)
                module = __import__(name)
                for seed in chosen:
                    wrong = check(processes, name, module, seed, counts)
                    counts["programs"] += 1
                    if wrong is not None:
                        failures.append((seed, wrong))
        finally:
            sys.path.remove(folder)
            processes.close()
    return failures, counts


def _parts(seeds: range, jobs: int) -> Iterator[range]:
    size = -(-len(seeds) // jobs)
    for start in range(0, len(seeds), size):
        yield seeds[start : start + size]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the programs; 1 if one of them fails."""
    parser = argparse.ArgumentParser(
        prog="pickle_fuzz", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--source", type=int, metavar="SEED", help="print that program, run nothing"
    )
    parser.add_argument("--child", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        child(options.child)
        return 0
    if options.source is not None:
        print(HEAD + Program(options.source).source())
        return 0
    seeds = range(options.first_seed, options.first_seed + options.programs)
    began = time.monotonic()
    if options.jobs > 1:
        command = [sys.executable, "-m", "tools.pickle_fuzz"]
        started = [
            subprocess.Popen([*command, "--first-seed", str(part[0]), "--programs", str(len(part))])
            for part in _parts(seeds, options.jobs)
        ]
        return max(process.wait() for process in started)
    failures, counts = run_programs(seeds)
    for seed, wrong in failures:
        print(f"seed {seed}: {wrong[:400]}")
    for text, count in sorted(counts.items()):
        print(f"{count:9,} {text}")
    print(
        f"{len(failures)} failed; {len(seeds) / (time.monotonic() - began):.0f} programs a second"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
