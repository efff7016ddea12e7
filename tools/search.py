"""Four searches for crashes, hangs, leaks and skipped `finally`: whatever happens in between.

    python -m tools.search --kind KIND [--seconds 60] [--seed 0] [--room ROOM] [--line LINE]

The lines of all rooms' leak tests (tests/lines.py) run again and again, each in a forked child:

    collect   the collector runs after each allocation, and finalizers run other lines of the room
    memory    the n-th allocation fails, alone or with those that follow, for every n
    signals   a signal arrives at every n-th bytecode, or at any moment; its handler runs other
              lines, and raises
    tracing   trace, profile and monitoring are switched on and off at every switch

Exceptions mean nothing.  Counted and reported are children that crash or hang, messages on standard
error, SystemError, blocks, references or bytes that grow with the repetitions, and bodies of
tasklets and threads that ended without their `finally`.  A wait of 2 s is given up: its line
may have lost by an exception what would end it.  The last line has the counts; the status is 1 if
anything was found.  A seed repeats the random choices, not the moments of signals and threads.
"""

import argparse
import ast
import contextlib
import faulthandler
import gc
import importlib
import json
import logging
import os
import platform
import random
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import types
import warnings
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOUND = ROOT / "build" / "search"
KINDS = ("collect", "memory", "signals", "tracing")
COUNTED = (
    "runs",
    "points",
    "given up",
    "crashes",
    "hangs",
    "leaks",
    "skipped finallys",
    "others",
    "of the interpreter",
)

SLICE_S = 10  # of one room, until the next one has its turn
ROUND_S, ROUNDS, REPETITIONS = 0.3, 30, 30
GIVE_UP_S, HANG_S = 2, 30
ROOM_S = 120  # beyond its time: its last line may take as long as a hang and its rounds
POINTS = 40  # allocations that fail in one visit of a line
NEVER = sys.maxsize
TOOL = 4  # of sys.monitoring
LASTING = 1000  # not for ever: what is tried until there is memory gets it then
SPARE_BLOCKS, SPARE_REFERENCES, SPARE_BYTES = 3, 15, 4096

# Rooms share these among their lines: a tasklet that never ends is not to run in another's run().
BOUNDED = """
def spin():
    for _ in range(20_000):
        pass


def schedules():
    for _ in range(100):
        schedule()


def calls():
    for _ in range(1000):
        values()
"""
# What an interrupted line leaves for the next one.
TIDY = {
    "io": "io.unpatch(); left.setblocking(True); right.setblocking(True)",
    "locks": "locks.unpatch()",
    "tasklets": (
        "tasklets.set_channel_callback(None); tasklets.set_schedule_callback(None)\n"
        "tasklets.set_error_handler(None); tasklets.set_trace_inheritance(None)\n"
        "tasklets.set_foreign_wakers(True); getcurrent().block_trap = False\n"
        "tasklets.switch_trap(-tasklets.switch_trap(0))"
    ),
    "threads": "threads.unpatch()",
    "prefork": "prefork.uninstall(); prefork.let_gc_run(); gc.unfreeze()",
}
# In a finalizer or handler: stock's own threading may be inside of a plain lock that a start needs.
STARTS = (
    "start(",
    "thread",
    "Thread",
    "elsewhere",
    "names.",
    "in_thread",
    "fork",
    "trim_regularly",
)
# In a finalizer on 3.11 these, too: a collection may begin after the interpreter has looked up the
# profile function and before it calls it, and that function is freed then, without cpythonplus too.
TRACING_BEGINS = ("setprofile(", "settrace(")
# Without memory from 3.14 on: where a frame object cannot be made, the interpreter raises
# SystemError, and 3.15.2 crashes while it begins to trace, without cpythonplus too.
TRACES = ("trace_function", "profile_function", *TRACING_BEGINS)


class Boom(Exception):  # noqa: N818
    """What handlers and trace functions raise."""


class Guard:
    """The body of a tasklet or thread, with a `finally`."""

    __slots__ = ("__weakref__", "call", "inside", "owner")

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call, self.inside = call, 0
        self.owner: Callable[[], Any] = bool  # what is in there, and None once it is gone

    def body(self, *args: Any, **keywords: Any) -> Any:
        """Call it, without recursion in C: it can be taken off its C stack then."""
        call = self.call
        try:  # an exception may come at each instruction: one too few is no finding
            self.inside += 1
            if keywords or args[1:]:
                return call(*args, **keywords)
            return call(args[0]) if args else call()
        finally:
            self.inside -= 1

    def is_skipped(self) -> bool:
        """Whether it has not left its `try`, and what it is in does not go on."""
        owner = self.owner()
        alive = owner.is_alive() if isinstance(owner, threading.Thread) else owner and owner.alive
        return self.inside > 0 and not alive


class Line:
    """One line in a process of its own."""

    def __init__(self, spec: dict[str, Any], names: dict[str, Any], lib: Any, name: str) -> None:
        self.kind, self.room, self.lib, self.names = spec["kind"], spec["room"], lib, names
        self.name, self.visit = name, spec["seed"]
        self.random = random.Random(f"{spec['seed']} {self.kind} {self.room} {name}")
        self.codes = {each: pieces(code) for each, code in spec["lines"].items()}
        left_out: tuple[str, ...] = () if self.kind == "tracing" else STARTS
        if self.kind == "collect" and sys.version_info < (3, 12):
            left_out = (*STARTS, *TRACING_BEGINS)
        self.mix = [
            each
            for each, line in spec["lines"].items()
            if not any(word in each + line for word in left_out)
        ]
        # A time-out stops a tasklet at any instruction, also of a guard's own `finally`.
        stops = re.compile(r"\brun(_for)?\(\d")
        self.stopping = {each for each, line in spec["lines"].items() if stops.search(line)}
        traces = any(word in name + spec["lines"][name] for word in TRACES)
        self.crashes_alone = self.kind == "memory" and traces and sys.version_info >= (3, 14)
        self.counts: Counter[str] = Counter()
        self.wrong: list[tuple[str, str]] = []
        self.guards: list[Guard] = []
        self.depth, self.active, self.began, self.handling = 0, False, float("inf"), False
        self.gave_up = False  # in this repetition
        self.each_ns = 0
        self.trail: list[str] = []  # of lines that ran in this repetition
        self.refs: deque[Any] = deque(maxlen=8)
        self.switching: list[Callable[[], Any]] = []

    # ---- running lines

    def once(self) -> None:
        """Run the line, whatever it raises."""
        self.counts["runs"] += 1
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        self.trail.clear()
        self.active, self.began, self.gave_up = True, time.monotonic(), False
        self.run(self.name)
        self.active, self.began = False, float("inf")

    def run(self, name: str) -> None:
        self.trail.append(name)
        names = self.names.copy()
        try:
            for code in self.codes[name]:
                if self.kind == "tracing":
                    self.switch()
                exec(code, names)
        except SystemError as error:  # no exception was set, or one too many
            self.wrong.append(("others", repr(error)))
        except BaseException:  # noqa: BLE001  # it means nothing here
            pass

    def meddle(self, *_: object) -> None:
        """Do as callbacks do: now and then another line, until one has waited in vain."""
        if not self.active or self.gave_up or self.depth >= 2 or not self.mix:
            return
        if vars(threading)["_active_limbo_lock"]._is_owned():  # noqa: SLF001  # all ends want it
            return
        if self.random.random() < 0.3:
            self.depth += 1
            try:
                self.run(self.random.choice(self.mix))
            finally:
                self.depth -= 1

    def tidy(self) -> None:
        """End what runs on, and look for what has not run its `finally`."""
        with contextlib.suppress(Exception):
            exec(TIDY.get(self.room, ""), self.names)
        # 3.11: the bound method in which a traced tasklet waits is referred to by its C stack only.
        traced = self.kind in ("signals", "tracing") and sys.version_info < (3, 12)
        end_tasklets(all_of_them=traced and self.room == "pickles")
        if not collects_soon():
            if len(sys._current_frames()) == 1:  # noqa: SLF001  # or one of another thread blocks in a finalizer
                self.wrong.append(("others", "the collector does not run"))
                os.write(2, f"{self.trail}".encode())
            return
        guards = [] if self.stopping.intersection(self.trail) else list(self.guards)
        self.guards.clear()
        for _ in range(3):  # one that waits in its `finally` is ended again by a later collection
            guards = [each for each in guards if each.is_skipped()]
            if guards:
                gc.collect()
        self.wrong += [
            ("skipped finallys", f"{each.call} is {each.inside} deep")
            for each in guards
            if each.is_skipped()
        ]

    # ---- bodies with a `finally`

    def watch(self) -> None:
        """Put a guard around whatever the room gives to tasklets and threads."""
        run_of_thread = threading.Thread.run

        def run(thread: threading.Thread) -> None:
            guard = Guard(partial(run_of_thread, thread))
            guard.owner = lambda: thread
            self.guards.append(guard)
            guard.body()

        threading.Thread.run = run  # type: ignore[method-assign, assignment]
        if self.room == "pickles" or "tasklet" not in self.names:
            return
        make = self.names["tasklet"]

        def tasklet(call: Any = None, *args: Any, **keywords: Any) -> Any:
            if not callable(call) or call is self.names.get(
                "work"
            ):  # pickled: begun here, ended there
                return make(call, *args, **keywords)
            guard = Guard(call)
            made = make(guard.body, *args, **keywords)
            guard.owner = weakref.ref(made)
            self.guards.append(guard)
            return made

        def rescuing(run: Any) -> Any:
            def call(*args: Any, **keywords: Any) -> Any:
                victim = run(*args, **keywords)
                if victim and victim.is_main:  # the lines forget their victims
                    victim.insert()
                return victim

            return call

        self.names["tasklet"] = tasklet  # noqa: CYC204  # for the whole process
        self.names["run"] = rescuing(self.names["run"])
        tasklets = sys.modules["cpythonplus.tasklets"]
        tasklets.run_for = rescuing(tasklets.run_for)  # type: ignore[attr-defined]

    # ---- (a) the collector

    def collect(self) -> Iterator[None]:
        gc.set_threshold(1)
        Meddler(self)
        yield
        gc.set_threshold(700, 10, 10)

    # ---- (c) signals

    def signals(self) -> Iterator[None]:
        if self.random.random() < 0.5:
            with self.each_bytecode(self.random.randrange(1, 60)):
                yield
            return
        tick = self.random.uniform(0.00003, 0.001)
        self.each_ns = 1
        signal.setitimer(signal.ITIMER_REAL, tick, tick)
        yield
        self.each_ns = 0
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)

    @contextlib.contextmanager
    def each_bytecode(self, number: int) -> Iterator[None]:
        """Let every so many bytecodes of this thread bring a signal."""
        self.lib.signals_begin(number, signal.SIGUSR1)
        if monitoring := getattr(sys, "monitoring", None):
            monitoring.set_events(TOOL, monitoring.events.INSTRUCTION)
        yield
        if monitoring:
            monitoring.set_events(TOOL, 0)
        self.lib.signals_end()

    def at_signal(self, _: int, frame: FrameType | None) -> None:
        """Do as a handler might."""
        self.counts["points"] += 1
        if self.handling or not self.active:
            return
        self.handling = True
        try:
            self.meddle()
        finally:
            self.handling = False
        self.perhaps_raise(frame, 0.1)

    def perhaps_raise(self, frame: FrameType | None, chance: float) -> None:
        """Not in a module of Python, which may have to stay whole, nor in this one."""
        if frame and frame.f_code.co_filename == "<line>" and self.random.random() < chance:
            raise Boom

    def at_alarm(self, number: int, frame: FrameType | None) -> None:
        """End a wait that lasts."""
        code = frame.f_code if frame else None  # none: no tasklet is current
        if time.monotonic() > self.began + GIVE_UP_S and code not in OWN:
            self.began, self.gave_up = time.monotonic(), True
            self.counts["given up"] += 1
            raise Boom
        if self.each_ns:
            self.at_signal(number, frame)

    # ---- (d) tracing

    def tracing(self) -> Iterator[None]:
        self.find_switches()
        if self.room in ("tasklets", "locks", "io", "pickles"):
            tasklets = sys.modules["cpythonplus.tasklets"]
            tasklets.set_schedule_callback(self.switch)
            tasklets.set_channel_callback(self.switch)
        yield
        for off in self.switching[::2]:
            with contextlib.suppress(Exception):
                off()
        self.switching.clear()

    def find_switches(self) -> None:
        """List what switches something off, and on, in turns."""
        import cProfile

        self.switching = [partial(sys.settrace, None), partial(sys.settrace, self.trace)]
        self.switching += [partial(sys.setprofile, None), partial(sys.setprofile, self.profile)]
        if hasattr(threading, "settrace_all_threads"):
            for name in "settrace_all_threads", "setprofile_all_threads":
                of_all = getattr(threading, name)
                self.switching += [partial(of_all, None), partial(of_all, self.profile)]
        profile = cProfile.Profile()
        self.switching += [profile.disable, profile.enable]
        if monitoring := getattr(sys, "monitoring", None):
            if monitoring.get_tool(TOOL) is None:
                monitoring.use_tool_id(TOOL, "search")
            events = [value for value in vars(monitoring.events).values() if value]
            for event in events:
                monitoring.register_callback(TOOL, event, self.monitor)
            off = partial(monitoring.set_events, TOOL, 0)
            for event in events:
                self.switching += [off, partial(monitoring.set_events, TOOL, event)]
            self.switching += [off, partial(monitoring.set_events, TOOL, sum(events[:8]))]

    def switch(self, *_: object) -> None:
        """Switch something on or off."""
        if self.active and self.switching:
            self.counts["points"] += 1
            with contextlib.suppress(ValueError, RuntimeError):
                self.random.choice(self.switching)()

    def trace(self, frame: FrameType, _event: str, _arg: object) -> Any:
        self.profile(frame)
        self.perhaps_raise(frame, 0.02)
        return self.random.choice((None, self.trace))

    def profile(self, *_: object) -> None:
        if self.random.random() < 0.05:
            self.switch()
        elif self.random.random() < 0.02:
            self.meddle()

    def monitor(self, *_: object) -> None:
        self.profile()

    # ---- (b) memory

    def memory(self) -> None:
        """Let allocations of the line fail, in this visit every n-th from the visit's number on."""
        self.without_memory(-1, -2)
        count = self.without_memory(-1, -2)
        faulthandler.cancel_dump_traceback_later()  # a child could not: its thread is not there
        stride, end = count // POINTS + 1, time.monotonic() + SLICE_S
        for number in range(self.visit % stride, count, stride):
            for last in (number, number + LASTING):
                if time.monotonic() > end:
                    return
                self.counts.update(("points", "runs"))
                self.lib.memory_asked_none()
                self.trail = [f"{number}-{last}"]
                wrong, said, _ = in_child(partial(self.point, number, last), self.lib)
                if wrong and not self.lib.memory_asked_by_extension_alone():
                    self.counts["of the interpreter"] += 1
                elif wrong:
                    self.wrong.extend((what, f"{detail} at {self.trail}") for what, detail in wrong)
                    os.write(2, said.encode())

    def point(self, first: int, last: int) -> "Line":
        self.wrong = []  # in a child: what was found before is its parent's
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        self.without_memory(first, last)
        self.tidy()
        return self

    def without_memory(self, first: int, last: int) -> int:
        """Run the line, and count its allocations, of which `first` to `last` fail."""
        self.counts["runs"] += 1
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        names = self.names.copy()
        self.active, self.began = True, time.monotonic()
        error, count = "", 0
        self.lib.memory_begin(first, last)
        try:
            for code in self.codes[self.name]:
                exec(code, names)
        except BaseException as raised:  # noqa: BLE001
            error = repr(raised) if isinstance(raised, SystemError) else ""
        while True:
            try:
                count = int(self.lib.memory_end())
                break
            except MemoryError:
                pass
        self.active, self.began = False, float("inf")
        if error:
            self.wrong.append(("others", error))
        return count

    # ---- all of it

    def used(self) -> tuple[int, int, int]:
        """Blocks, references to what lasts, and bytes of malloc."""
        self.names["clear_caches"]()
        gc.collect()
        info = self.names["mallinfo2"]()
        values = list(self.names.values())
        total = getattr(sys, "gettotalrefcount", None)
        count = total() if total else sum(map(sys.getrefcount, values))
        return sys.getallocatedblocks(), count, info.uordblks + info.hblkhd

    def round(self) -> None:
        """Run it so often that what leaks each time is seen, on a loaded machine, too."""
        began, worked = time.monotonic(), time.process_time()
        for _ in range(REPETITIONS):
            for _ in getattr(self, self.kind)():
                self.once()
            self.tidy()
            if time.process_time() - worked > ROUND_S or time.monotonic() - began > 10 * ROUND_S:
                break

    def search(self) -> "Line":
        """Run the line as its kind asks, and note what went wrong."""
        if self.crashes_alone:
            self.counts["of the interpreter"] += 1
            return self
        self.watch()
        signal.signal(signal.SIGALRM, self.at_alarm)
        signal.signal(signal.SIGUSR1, self.at_signal)
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        if self.kind == "memory":
            self.memory()
            return self
        if self.kind == "signals" and (monitoring := getattr(sys, "monitoring", None)):
            monitoring.use_tool_id(TOOL, "search")
            step = self.lib.signals_callback()
            monitoring.register_callback(TOOL, monitoring.events.INSTRUCTION, step)
        # Objects that a line imports, caches or notes in traced code the first time are no leak.
        with self.each_bytecode(NEVER) if self.kind == "signals" else contextlib.nullcontext():
            for name in self.mix:
                self.run(name)
                self.tidy()
        self.round()
        kinds = self.kinds()
        grown = [sys.maxsize] * 3
        for _ in range(ROUNDS):
            before = self.used()
            self.round()
            if threading.active_count() > 1:  # an interrupted line has left it waiting
                return self
            grown = [min(g, a - b) for g, a, b in zip(grown, self.used(), before, strict=True)]
            spare = SPARE_BLOCKS, SPARE_REFERENCES, SPARE_BYTES
            if all(g <= most for g, most in zip(grown, spare, strict=True)):
                return self
        if self.kind == "tracing" and sys.version_info[:2] == (3, 12):
            # 3.12.1 leaks where a callback of sys.monitoring raises, with its own locks, too.
            self.counts["of the interpreter"] += 1
            return self
        more = dict((self.kinds() - kinds).most_common(8))
        told = "a round: {} blocks, {} references, {} bytes".format(*grown)
        self.wrong.append(("leaks", f"{told}; in all {more}"))
        return self

    def kinds(self) -> Counter[str]:
        """How many objects of each type the collector knows."""
        gc.collect()
        return Counter(type(each).__name__ for each in gc.get_objects())


class Meddler:
    """Garbage whose finalizer runs other lines, and makes the next one."""

    def __init__(self, line: Line) -> None:
        self.me, self.line = self, line
        line.refs.append(weakref.ref(self, line.meddle))

    def __del__(self) -> None:
        self.line.counts["points"] += 1
        self.line.meddle()
        if self.line.active:
            Meddler(self.line)


OWN = {
    value.__code__
    for value in vars(Line).values()
    if isinstance(value, types.FunctionType) and value.__name__ != "trace"
}


def end_tasklets(*, all_of_them: bool) -> None:
    """Kill those in the queue, and those in which the collector waits, or all."""
    tasklets = sys.modules.get("cpythonplus.tasklets")
    if not tasklets:
        return
    for _ in range(1000):
        if (other := tasklets.getcurrent().next) in {tasklets.getcurrent(), None}:
            break
        with contextlib.suppress(BaseException):
            other.kill()
    if collects() and not all_of_them:
        return
    # One that blocks in a finalizer has the collector wait for it, as a thread would.
    with contextlib.suppress(BaseException):  # what a killed one raises may come anywhere
        # All objects are not held for long: a thread's dict is one, and its end ends its tasklets.
        found = [each for each in gc.get_objects() if issubclass(type(each), tasklets.tasklet)]
        for each in found:
            if each is not tasklets.getcurrent():
                with contextlib.suppress(BaseException):
                    each.kill()


def collects() -> bool:
    """Collect, and say whether anything was."""
    ring: list[Any] = []
    ring.append(Boom(ring))
    alive = weakref.ref(ring[0])
    ring = []
    gc.collect()
    return alive() is None


def collects_soon() -> bool:
    """Collect; a thread that ends may be inside of a collection, and has no frame that tells."""
    end = time.monotonic() + GIVE_UP_S
    while not (done := collects()) and time.monotonic() < end and len(sys._current_frames()) == 1:  # noqa: SLF001
        time.sleep(0.01)
    return done


def pieces(line: str) -> list[CodeType]:
    """Compile each statement by itself."""
    return [
        compile(ast.Module([each], []), "<line>", "exec") for each in ast.parse(line, "<line>").body
    ]


# ---- the process of a room, which forks one for each line


def room(path: str) -> None:
    """Print what each line came to, as JSON, until the time is over."""
    import ctypes

    spec = json.loads(Path(path).read_text("utf-8"))
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    names: dict[str, Any] = vars(module)
    lib = ctypes.PyDLL(spec["library"])
    lib.memory_begin.argtypes = [ctypes.c_long, ctypes.c_long]
    lib.signals_begin.argtypes = [ctypes.c_long, ctypes.c_int]
    if sys.version_info >= (3, 12):
        lib.signals_callback.restype = ctypes.py_object
    native = importlib.import_module("cpythonplus._native")
    inside = ctypes.cast(ctypes.PyDLL(native.__file__).PyInit__native, ctypes.c_void_p)
    lib.crashes_are_of(inside)
    for begin, end in frame_code() if spec["kind"] == "memory" else ():
        lib.frames_are_made_in(ctypes.c_void_p(begin), ctypes.c_void_p(end))
    program = spec["names"] + (BOUNDED if spec["room"] == "tasklets" else "")
    exec(compile(program, "<line>", "exec"), names)
    warnings.simplefilter("ignore")
    logging.disable()  # a server's function that raised
    sys.unraisablehook = lambda _: None
    threading.excepthook = lambda _: None
    order = [spec["line"]] if spec["line"] else list(spec["lines"])
    random.Random(spec["seed"]).shuffle(order)
    end = time.monotonic() + spec["seconds"]
    for name in order:
        line = Line(spec, names, lib, name)
        wrong, said, counts = in_child(line.search, lib)
        print(json.dumps([name, counts, wrong, said]), flush=True)
        if time.monotonic() > end:
            break
    sys.stdout.flush()
    os._exit(0)


def frame_code() -> list[tuple[int, int]]:
    """Where 3.11 makes and clears frames of Python code: without memory it drops the exception."""
    import ctypes

    known = ctypes.cast(ctypes.pythonapi.PyEval_EvalCode, ctypes.c_void_p).value or 0
    shared = f"lib/{sysconfig.get_config_var('INSTSONAME')}"
    program = Path(sys.base_prefix, shared)
    command = ["nm", "--print-size", str(program if program.exists() else Path(sys.executable))]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    rows = [row for line in listed.splitlines() if len(row := line.split()) == 4]
    symbols = {name: (int(start, 16), int(size, 16)) for start, size, _, name in rows}
    base = known - symbols.get("PyEval_EvalCode", (known, 0))[0]
    found = [symbols[name] for name in ("_PyEval_Vector", "_PyFrame_Clear") if name in symbols]
    return [(base + start, base + start + size) for start, size in found]


def in_child(search: Callable[[], Line], lib: Any) -> tuple[list[Any], str, dict[str, int]]:
    """Return what is wrong, what was said, and counts."""
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as said:
        pid = os.fork()
        if pid == 0:
            os.dup2(said.fileno(), 2)
            lib.crashes_tell()
            faulthandler.enable()
            try:
                line = search()
                wrong = list(dict.fromkeys(line.wrong))
                os.write(told.fileno(), json.dumps([wrong, line.counts]).encode())
            except BaseException:  # noqa: BLE001  # it is said
                sys.__excepthook__(*sys.exc_info())
            finally:
                os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        told.seek(0)
        said.seek(0)
        text = said.read().decode(errors="replace")
        wrong, counts = json.loads(told.read() or b"[[], {}]")
    if not counts and "Timeout (" in text and "Fatal Python error" not in text:
        wrong.append(("hangs", f"status {status}"))
    elif not counts:
        wrong.append(("crashes", f"status {status}"))
    elif text and not wrong:
        wrong.append(("others", "said something"))
    return wrong, text, counts


# ---- the program


class Searching:
    """All rooms in turn, and what was found."""

    def __init__(self, kind: str, rooms: Mapping[str, tuple[str, Mapping[str, str]]]) -> None:
        self.kind, self.rooms = kind, rooms
        self.counts = Counter(dict.fromkeys(COUNTED, 0))
        self.lines: set[tuple[str, str]] = set()
        self.found: list[str] = []

    def visit(self, room: str, seed: int, seconds: float, library: Path, only: str = "") -> None:
        """Run a room's lines for so long."""
        from tests.leaks import MEASURE

        names, lines = self.rooms[room]
        imports = "import ctypes, gc, os, signal, sys, threading, time\n"
        spec = {
            "kind": self.kind, "room": room, "seed": seed, "seconds": seconds, "line": only,
            "library": str(library), "names": imports + MEASURE + names, "lines": dict(lines),
        }  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "spec.json")
            path.write_text(json.dumps(spec), "utf-8")
            process = subprocess.Popen(
                [sys.executable, __file__, "--room-process", str(path)],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                start_new_session=True, cwd=ROOT,
            )  # fmt: skip
            try:
                told, _ = process.communicate(timeout=seconds + ROOM_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                told, _ = process.communicate()
                told += f"\nstopped after {seconds + ROOM_S:.0f} s"
        for text in told.splitlines():
            try:
                line, counts, wrong, said = json.loads(text)
            except ValueError:
                continue
            self.lines.add((room, line))
            self.counts.update(counts)
            for what, detail in wrong:
                self.counts[what] += 1
                self.report(room, line, seed, f"{what}: {detail}", said)
        if process.returncode:
            self.counts["crashes"] += 1
            self.report(room, "", seed, f"the room's process: {process.returncode}", told)

    def report(self, room: str, line: str, seed: int, what: str, said: str) -> None:
        FOUND.mkdir(parents=True, exist_ok=True)
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        path = FOUND / f"{self.kind}-{version}-{len(self.found)}.txt"
        again = f"--kind {self.kind} --room {room} --line {line!r} --seed {seed}"
        text = f"{what[:300]}\n    python -m tools.search {again}"
        path.write_text(f"{text}\n{said}")
        self.found.append(text)
        print(f"search: {text}\n    {path.relative_to(ROOT)}", flush=True)

    def summary(self) -> str:
        return (
            f"search {self.kind}: {platform.python_version()}, {len(self.lines)} lines, "
            + ", ".join(f"{self.counts[name]:,} {name}" for name in COUNTED)
        )


def build(folder: Path) -> Path:
    """Compile search.c."""
    from tests.support import compile_c

    include = f"-I{sysconfig.get_path('include')}"
    source = Path(__file__).with_suffix(".c")
    return compile_c(folder / "search.so", [source], include, "-shared", "-fPIC")


def main() -> int:
    """Search, and say what was found."""
    parser = argparse.ArgumentParser(prog="search", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kind", choices=KINDS, action="append", help="all, unless named")
    parser.add_argument("--seconds", type=float, default=60, help="of each kind")
    parser.add_argument("--seed", type=int, default=0, help="of the first round")
    parser.add_argument("--room", action="append")
    parser.add_argument("--line", default="", help="this one alone, once")
    parser.add_argument("--room-process", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.room_process:
        room(options.room_process)
    from tests.lines import MORE_ROOMS, ROOMS

    rooms = {**ROOMS, **MORE_ROOMS}
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        library = build(Path(folder))
        for kind in options.kind or KINDS:
            searching = Searching(kind, rooms)
            end, seed = time.monotonic() + options.seconds, options.seed
            while True:
                for each in options.room or rooms:
                    left = end - time.monotonic()
                    if left > 0 or options.line:
                        searching.visit(each, seed, min(left, SLICE_S), library, options.line)
                seed += 1
                if options.line or time.monotonic() > end:
                    break
            print(searching.summary(), flush=True)
            found += len(searching.found)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
