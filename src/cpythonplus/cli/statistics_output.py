"""`--stats` and `--stats-json`: what the scheduler did, told when the process ends.

Told by each process that ends the normal way: its program returns, raises, calls sys.exit or is
interrupted. Nothing is told by one that ends by os._exit (multiprocessing's forked workers do), by
a signal's default action or by exec: no code of ours runs there.

Whatever happens in here, the program's exit status stays what it is, and nothing is raised.
"""

# Nothing may be raised, and the module is on the start-up path, so pathlib and contextlib are not
# imported.
# ruff: noqa: BLE001, PTH105, PTH108, PTH118, PTH120, PTH123, S110, SIM105

import atexit
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType
    from rich.table import Table

    from cpythonplus.cli.features import Run
    from cpythonplus.gil import Statistics, Times

MOST_THREADS = 20
"""Threads that the table shows, those with the most CPU time; the JSON file has all."""
WIDTH_OF_A_FILE = 100
"""Columns of the table where standard error is no terminal."""
WIDTH_OF_A_COMMAND = 60
"""Columns of the program's command line in the heading."""


def register(run: "Run", *, table: bool, json_file: str | None) -> None:
    """Have the statistics told at exit, by this process and by its forked children, each its own.

    table: on standard error. json_file: absolute path, `%p` in it is the pid; without `%p` only the
    process that `cpythonplus run` became writes it, so that no child overwrites its numbers.
    """
    # Before the program changes it: its own folder may hold a json.py or a rich.py.
    path = [*sys.path, os.path.dirname(os.path.dirname(os.path.dirname(__file__)))]

    # Registered first, so called last, after the program's own functions. Forked children have it
    # too; the scheduler counts from zero in them.
    atexit.register(_at_exit, run.pid, path, table=table, json_file=json_file)


def _at_exit(program_pid: int, path: list[str], *, table: bool, json_file: str | None) -> None:
    saved = sys.path
    sys.path = path
    try:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _report(program_pid, table=table, json_file=json_file)
    except BaseException as error:  # a second Ctrl-C too
        _tell(f"no statistics: {error!r}")
    finally:
        sys.path = saved
        _restore_interrupt()


def _restore_interrupt() -> None:
    """Have a program that an uncaught KeyboardInterrupt ended still die of SIGINT.

    CPython notes such an end in a flag and sends itself SIGINT at the very end; but each `exec` or
    `eval` of a string clears the flag, and the modules imported here do that (dataclasses). One
    that raises KeyboardInterrupt sets it again.
    """
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        try:
            exec("raise KeyboardInterrupt")  # noqa: S102
        except KeyboardInterrupt:
            pass


def _report(program_pid: int, *, table: bool, json_file: str | None) -> None:
    from cpythonplus import gil

    # Once, so that both tell the same; before rich is imported, which is not the program's doing.
    statistics = gil.statistics()
    if json_file is not None and ("%p" in json_file or os.getpid() == program_pid):
        path = json_file.replace("%p", str(os.getpid()))
        try:
            write_json(path, statistics)
        except OSError as error:
            _tell(f"cannot write {path!r}: {error.strerror}")
    if table:
        # What the program printed comes first, where both go to the same file. If this fails, it
        # fails again, and is told, when the interpreter flushes.
        for stream in (sys.__stdout__, sys.__stderr__):
            try:
                if stream is not None:
                    stream.flush()
            except (OSError, ValueError):
                pass
        write_to_stderr(render(statistics))


def write_json(path: str, statistics: "Statistics") -> None:
    """Write the statistics to `path` in one step: a reader sees the old file or the whole new one.

    Raises OSError; then no temporary file is left.
    """
    import json

    content = {
        "pid": os.getpid(),
        "argv": sys.orig_argv,
        "python": sys.version,
        **statistics.as_dict(),
    }
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.tmp")
    # Not tempfile: it makes files that only their owner can read.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=2)
            file.write("\n")
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def render(statistics: "Statistics") -> str:
    """Return the table as text, with colours if standard error is a terminal."""
    from io import StringIO

    from rich.box import ASCII2, SIMPLE_HEAD
    from rich.console import Console, Group
    from rich.text import Text

    stream = sys.__stderr__
    terminal = _is_terminal()
    encoding = (getattr(stream, "encoding", None) or "ascii").lower()
    box = SIMPLE_HEAD if encoding.startswith("utf") else ASCII2
    console = Console(
        file=StringIO(),
        force_terminal=terminal,
        width=None if terminal else WIDTH_OF_A_FILE,
        highlight=False,
        markup=False,
        emoji=False,
    )

    def table(*columns: str) -> "Table":
        from rich.table import Table

        result = Table(box=box, pad_edge=False)
        for position, column in enumerate(columns):
            result.add_column(column, justify="right" if position else "left", no_wrap=True)
        return result

    classes = table("", "count", "total", "p50", "p99", "max")
    for name, of_class in (
        ("interactive", statistics.interactive),
        ("batch", statistics.batch),
    ):
        classes.add_row(f"{name}: waits", *_times(of_class.waits))
        classes.add_row(f"{name}: holds", *_times(of_class.holds))

    threads = table("thread", "id", "class", "cpu", "waited", "held", "waits", "switches")
    ordered = sorted(statistics.threads, key=lambda thread: -thread.cpu_ns)
    for thread in ordered[:MOST_THREADS]:
        threads.add_row(
            Text(thread.name),
            str(thread.native_id),
            thread.thread_class,
            duration(thread.cpu_ns),
            duration(thread.wait_ns),
            duration(thread.hold_ns),
            f"{thread.waits:,}",
            f"{thread.switches:,}",
        )

    parts: list[RenderableType] = [
        Text(f"cpythonplus statistics of pid {os.getpid()}: {_command()}", style="bold"),
        Text(_summary(statistics)),
        classes,
    ]
    if ordered:
        parts.append(threads)
    if len(ordered) > MOST_THREADS:
        parts.append(Text(f"and {len(ordered) - MOST_THREADS} threads more"))
    atomic = statistics.atomic
    parts.append(
        Text(
            f"atomic sections: {atomic.sections:,}, contended {atomic.contended:,}, over the limit "
            f"{atomic.overlong:,}, abandoned {atomic.abandoned:,}, longest "
            f"{duration(atomic.longest_ns)}"
        )
    )
    with console.capture() as captured:
        console.print(Group(*parts))
    return "".join(line.rstrip() + "\n" for line in captured.get().splitlines())


def _summary(statistics: "Statistics") -> str:
    state = "GIL scheduled" if statistics.active else "GIL not scheduled"
    return (
        f"{state}; switches {statistics.switches:,}, forced {statistics.forced_switches:,}; "
        f"requests {statistics.requests:,}, at once {statistics.immediate_requests:,}"
    )


def _times(times: "Times") -> "Iterable[str]":
    values = (times.total_ns, times.p50_ns, times.p99_ns, times.max_ns)
    return (f"{times.count:,}", *(duration(value) if times.count else "-" for value in values))


def _command() -> str:
    """Return the command line of the process, cut to something that can stand in a heading."""
    text = " ".join(" ".join(sys.orig_argv[1:]).split())
    return text if len(text) <= WIDTH_OF_A_COMMAND else text[: WIDTH_OF_A_COMMAND - 3] + "..."


def duration(nanoseconds: int) -> str:
    """Return a time with three figures and its unit: `4.21 ms`."""
    for unit, factor in (("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)):
        if nanoseconds >= factor:
            value = nanoseconds / factor
            decimals = max(0, 3 - len(str(int(value))))
            return f"{value:,.{decimals}f} {unit}"
    return f"{nanoseconds} ns"


def write_to_stderr(text: str) -> None:
    """Write `text` to standard error, or as much as it takes; a broken or closed one is survived.

    Past the stream object: data that it could not get rid of would make Python exit with 120. And
    with SIGPIPE held back: a program may have set it to end the process.
    """
    import signal

    stream = sys.__stderr__
    if stream is None or stream.closed:
        return
    data = text.encode(stream.encoding, "backslashreplace")
    held_back = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
    try:
        descriptor = stream.fileno()
        while data:
            data = data[os.write(descriptor, data) :]
    except (OSError, ValueError):
        if signal.SIGPIPE not in held_back:
            signal.sigtimedwait({signal.SIGPIPE}, 0)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held_back)


def _is_terminal() -> bool:
    stream = sys.__stderr__
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def _tell(message: str) -> None:
    try:
        write_to_stderr("cpythonplus: " + " ".join(message.split()) + "\n")
    except BaseException:
        pass
