"""The features that `cpythonplus run` can switch on, in one table.

A new feature is one entry in `FEATURES`: the command line, its help, `--show`, the environment
string that carries the choice into the started interpreter, and the activation there, all follow
from it.

The runner and every interpreter that it starts import this module, so it imports nothing that is
not loaded anyway: not even `dataclasses`, which would cost 11 ms. The `activate` of a feature
imports its own modules.
"""

# Importing pathlib would cost more than all of this.
# ruff: noqa: PTH100, PTH112, PTH113, PTH118, PTH120

import os

from cpythonplus._base.shared_options import (
    JOB_SHARE_SHAPE,
    JOB_SHARE_TEXT,
    POLICY_SHAPE,
    POLICY_TEXT,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping

COMMAND = "cpythonplus run"
OUTSIDE_SITE = os.path.join(os.path.dirname(__file__), "outside_site")
"""Folder of the `sitecustomize` that stands in for `cpythonplus.pth`."""
VARIABLE = "CPYTHONPLUS_RUN"
"""The environment variable that carries the features into the started interpreter."""
MARK = "cpythonplus_run"
"""An -X option: `run` has made this command line, so the variable counts with -I and -E, too."""


class Option:
    """One option of a feature, with or without a value."""

    def __init__(  # noqa: PLR0917  # a row of a table
        self,
        flag: str,
        field: str,
        text: str,
        metavar: str | None = None,
        check: "Callable[[str], str]" = str,
        decode: "Callable[[str], object]" = str,
        optional: str = "",
    ) -> None:
        """Describe an option.

        flag: as typed, `--grace-us`; field: its key in the environment string and in `activate`.
        metavar: the name of the value in the help; None for a switch, whose value is then "1".
        check: turns the typed text into the carried text; ValueError tells the mistake. decode:
        turns the carried text into the value for `activate`. optional: the
        value of the option without `=VALUE`, which must then follow at once.
        """
        self.flag = flag
        self.optional = optional
        self.field = field
        self.help = text
        self.metavar = metavar
        self.check = check
        self.decode = decode


class Feature:
    """A part of cpythonplus that `cpythonplus run` switches on in the started interpreter."""

    def __init__(
        self,
        name: str,
        summary: str,
        activate: "Callable[[Mapping[str, object], Run], None]",
        *,
        by_default: bool = False,
        options: tuple[Option, ...] = (),
        defaults: "Callable[[], Mapping[str, object]]" = dict,
        command: str = COMMAND,
        prepare: "Callable[[dict[str, str], MutableMapping[str, str]], None] | None" = None,
        refusal: "Callable[[], str | None]" = str,
    ) -> None:
        """Describe a feature.

        activate: called in the started interpreter, before the program, with the decoded values of
            the given options (by field). Any exception ends the start: one line, status 2.
        by_default: on unless `--no-NAME` is given; otherwise any of its options switches it on.
        defaults: the values of options that were not given, for the help and `--show`.
        command: the command that offers it; messages begin with it.
        prepare: called by the runner with the carried texts and the environment of the program; it
            may change both. ValueError tells the mistake.
        refusal: returns the reason why this interpreter cannot have it, for `--show`; "" or None
            if it can.
        """
        self.name = name
        self.summary = summary
        self.by_default = by_default
        self.options = options
        self.activate = activate
        self.defaults = defaults
        self.command = command
        self.prepare = prepare
        self.refusal = refusal

    @property
    def switch_off(self) -> str:
        """Return the option that switches the feature off."""
        return f"--no-{self.name}"


class Run:
    """One `cpythonplus run`, as the started interpreters see it.

    home: folder of the cpythonplus package that the runner belongs to; python: the kind of
    interpreter, see `python_tag`. If one of them differs, the interpreter is of another
    installation. pid: of the process that the runner became (exec keeps it): tells the program from
    its children. children: whether interpreters that the program starts get the features, too.
    features: carried values by feature name, then by field; a feature that is missing is off.
    """

    __slots__ = ("children", "features", "home", "pid", "python")

    def __init__(
        self,
        home: str,
        python: str,
        pid: int,
        features: dict[str, dict[str, str]],
        *,
        children: bool,
    ) -> None:
        self.home = home
        self.python = python
        self.pid = pid
        self.children = children
        self.features = features

    def encode(self) -> str:
        """Return CPYTHONPLUS_RUN's value: `key=value;...`, with `;` and `%` percent-encoded."""
        pairs = [
            ("home", self.home),
            ("python", self.python),
            ("pid", str(self.pid)),
            ("children", str(int(self.children))),
        ]
        for name, values in self.features.items():
            pairs.append((name, "1"))
            pairs += [(f"{name}.{field}", value) for field, value in values.items()]
        return ";".join(
            f"{key}={value.replace('%', '%25').replace(';', '%3B')}" for key, value in pairs
        )

    @classmethod
    def decode(cls, text: str) -> "Run":
        """Return the decoded Run; ValueError for a text that `encode` cannot have written."""
        run = cls("", "", 0, {}, children=True)
        for pair in text.split(";"):
            key, equals, value = pair.partition("=")
            value = value.replace("%3B", ";").replace("%25", "%")
            name, dot, field = key.partition(".")
            if not equals:
                raise ValueError(f"expected key=value, got {pair!r}")
            if dot and name in run.features:
                run.features[name][field] = value
            elif not dot and key in ("home", "python"):
                setattr(run, key, value)
            elif not dot and key == "pid":
                run.pid = int(value)
            elif not dot and key == "children":
                run.children = value != "0"
            elif not dot and any(feature.name == name for feature in FEATURES):
                run.features[name] = {}
            else:
                raise ValueError(f"unknown key {key!r}")
        return run


def whole_number(text: str) -> str:
    """Check an option that takes an integer. The feature judges its range."""
    try:
        return str(int(text))
    except ValueError:
        raise ValueError(f"expected a whole number, got {text!r}") from None


def number(text: str) -> str:
    """Check an option that takes a float. The feature judges its range."""
    try:
        return repr(float(text))
    except ValueError:
        raise ValueError(f"expected a number, got {text!r}") from None


_SHORTEST_S, _LONGEST_S = 0.1, 1e6


def seconds(text: str) -> str:
    """Check an option that takes a time in seconds."""
    if not _SHORTEST_S <= float(number(text)) <= _LONGEST_S:
        raise ValueError(f"expected {_SHORTEST_S} to {_LONGEST_S:,.0f} seconds, got {text!r}")
    return text


def milliseconds(text: str) -> str:
    """Check an option that takes a time in milliseconds."""
    if not 1 <= float(number(text)) <= _LONGEST_S:
        raise ValueError(f"expected 1 to {_LONGEST_S:,.0f} milliseconds, got {text!r}")
    return text


def signal_number(text: str) -> str:
    """Check an option that takes a signal: `SIGUSR1`, `usr1` or `10`."""
    import signal

    name = f"SIG{text.upper().removeprefix('SIG')}"
    is_number = text.isascii() and text.isdecimal()
    try:
        number = int(text) if is_number else signal.Signals[name]
    except (KeyError, ValueError):
        number = 0
    if number not in signal.valid_signals():
        raise ValueError(f"expected the name or number of a signal, got {text!r}")
    return str(int(number))


def cycle_kinds(text: str) -> str:
    """Check an option that takes kinds of cycles, separated by commas."""
    from cpythonplus.memory.cycles import Kind

    names = [name.strip() for name in text.split(",")]
    known = [str(kind) for kind in Kind]
    for name in names:
        if name not in known:
            raise ValueError(f"expected kinds among {', '.join(known)}, got {name!r}")
    return ",".join(names)


def positive_number(text: str) -> str:
    """Check an option that takes an integer from 1 on."""
    number = whole_number(text)
    if int(number) < 1:
        raise ValueError(f"expected a number of 1 or more, got {text!r}")
    return number


def one_of(names: "tuple[str, ...]") -> "Callable[[str], str]":
    """Return the `check` of an option that takes one of several words."""

    def check(text: str) -> str:
        if text not in names:
            from cpythonplus._base.text.suggesting import suggestion

            raise ValueError(
                f"expected {' or '.join(names)}, got {text!r}{suggestion(text, [*names])}"
            )
        return text

    return check


def output_file(text: str) -> str:
    """Check an option that names an output file; `%p` stands for the pid.

    The path is made absolute, because the program may change its working directory. A folder that
    does not exist is refused now: at exit it would be too late.
    """
    path = os.path.abspath(text)
    # Exec keeps the pid, so the program will write exactly this name.
    folder, name = os.path.split(path.replace("%p", str(os.getpid())))
    if not text or text.endswith("/") or not name or os.path.isdir(os.path.join(folder, name)):
        raise ValueError(f"expected a file name, got {text!r}")
    if not os.path.isdir(folder):
        raise ValueError(f"the folder {folder!r} does not exist")
    # A stream, a device or a pipe is written to; a file is replaced by another one of its folder.
    target = os.path.join(folder, name)
    stays = folder in ("/dev", "/dev/fd", "/proc/self/fd") or not os.path.isfile(target)
    if not os.access(folder, os.W_OK | os.X_OK) and not (stays and os.access(target, os.W_OK)):
        raise ValueError(f"the folder {folder!r} is not writable")
    return path


def profile_file(text: str) -> str:
    """Check an option that names the file of a profile of the GIL; its ending is the format."""
    from cpythonplus._doctor.gil_profile.writing import format_of

    format_of(text)
    return output_file(text)


def allocator(text: str) -> str:
    """Check an option that names an allocator, or its library by a path."""
    from cpythonplus.memory import allocators

    allocators.kind_of(text)
    return os.path.abspath(text) if os.sep in text else text


def policy(text: str) -> str:
    """Check an option that takes fields of a policy: `slice_us=5000,spin_us=0`."""
    from cpythonplus.gil._limits import read, written

    return written(read(text))


def policy_numbers(text: str) -> "dict[str, object]":
    """Return the fields of a policy from the text that `policy` made."""
    from cpythonplus.gil._limits import read

    return read(text)


def metrics_address(text: str) -> str:
    """Check an option that takes the port of the metrics."""
    from cpythonplus.prefork._options import host_and_port

    try:
        host_and_port(text)
    except ValueError:
        expected = "expected a port like 9100, 127.0.0.1:9100 or [::1]:9100"
        raise ValueError(f"{expected}, got {text!r}") from None
    return text


def job_share(text: str) -> str:
    """Check an option that takes a share of the GIL for threads that compute: `25%` or `25`."""
    from cpythonplus.gil._limits import read_share

    return repr(read_share(text))


def _policy_default() -> "dict[str, object]":
    from cpythonplus.gil._limits import LIMITS, SHARE, written

    numbers = {limit.name: limit.default for limit in LIMITS}
    return {"policy": written(numbers), "job_share": f"{numbers[SHARE]:.0%}"}


def _activate_gil(values: "Mapping[str, object]", run: Run) -> None:  # noqa: ARG001
    # Not gil.install(gil.Policy(...)): it would import dataclasses, 11 ms.
    from cpythonplus.gil._control import install_numbers
    from cpythonplus.gil._limits import SHARE

    numbers: dict[str, object] = {**values.get("policy", {})}  # type: ignore[dict-item]
    if "job_share" in values:
        numbers[SHARE] = values["job_share"]
    install_numbers(numbers)


def _gil_refusal() -> str:
    from cpythonplus.gil._control import free_threaded

    return "this build has no GIL, and threads run beside each other" if free_threaded() else ""


def _activate_threads(values: "Mapping[str, object]", run: Run) -> None:  # noqa: ARG001
    from cpythonplus.threads._patching import patch

    patch()


def _activate_deadlocks(values: "Mapping[str, object]", run: Run) -> None:  # noqa: ARG001
    from cpythonplus.threads._deadlock_watch import watch_deadlocks

    watch_deadlocks(float(str(values["after"])))


def _activate_stalls(values: "Mapping[str, object]", run: Run) -> None:  # noqa: ARG001
    from cpythonplus.gil._stall_watch import watch_stalls

    watch_stalls(float(str(values["limit_ms"])))


def _activate_metrics(values: "Mapping[str, object]", run: Run) -> None:  # noqa: ARG001
    from cpythonplus.prefork._routes.servers import count_requests

    count_requests(str(values["address"]))


def _activate_stackless(values: "Mapping[str, object]", run: Run) -> None:  # noqa: ARG001
    import sys

    from cpythonplus import stackless

    # Import now, not by a finder: a missing module must be reported before the program begins.
    sys.modules["stackless"] = stackless


def _tasklets_refusal() -> "str | None":
    from cpythonplus._base.errors import UnsupportedPlatform

    try:
        import cpythonplus.tasklets  # noqa: F401
    except UnsupportedPlatform as error:
        return str(error)
    return None


def _dump_refusal() -> "str | None":
    refusal = _tasklets_refusal()
    return f"only the threads' stacks are printed, because {refusal}" if refusal else None


def _activate_dump(values: "Mapping[str, object]", run: Run) -> None:  # noqa: ARG001
    from cpythonplus._base.errors import UnsupportedPlatform

    number = int(str(values["signal"]))
    try:
        from cpythonplus import tasklets
    except UnsupportedPlatform:
        import faulthandler

        # The threads' stacks at least. By number: sys.stderr may be missing.
        faulthandler.register(number, file=2, all_threads=True, chain=False)
    else:
        tasklets.dump_on(number)


def _prepare_malloc(values: dict[str, str], environment: "MutableMapping[str, str]") -> None:
    from cpythonplus.memory import allocators

    kind = allocators.kind_of(values["kind"])
    values["kind"] = ",".join([kind, *allocators.apply(values["kind"], environment)])


def _activate_malloc(values: "Mapping[str, object]", run: Run) -> None:
    from cpythonplus.memory import allocators

    kind, *added = str(values["kind"]).split(",")
    library = os.environ.get("LD_PRELOAD", "").partition(":")[0] if added else ""
    if not run.children:
        allocators.remove(added, os.environ)
    if kind == "glibc-tuned":
        allocators.trim_regularly()
    elif os.getpid() == run.pid and not allocators.is_loaded(library):
        # The dynamic linker would only complain, and start the program without it.
        raise ValueError(f"{library!r} could not be loaded")


def without_allocator(environment: "MutableMapping[str, str]") -> None:
    """Take the changes of an outer `cpythonplus run --malloc` out of an environment."""
    try:
        carried = Run.decode(environment.get(VARIABLE, "")).features.get("malloc")
    except ValueError:
        return
    if carried:
        from cpythonplus.memory import allocators

        allocators.remove(carried.get("kind", "").split(",")[1:], environment)


def _activate_doctor(values: "Mapping[str, object]", run: Run) -> None:  # noqa: ARG001
    from cpythonplus._doctor import agent

    # If a process cannot open its socket (a full disk, no descriptors left), it has none.
    error = agent.start()
    if error and os.getpid() == run.pid:  # not in each of its children
        tell_no_doctor("cpythonplus run", error)


def tell_no_doctor(command: str, error: int) -> None:
    """Report that `doctor PID` will not work; error: an errno."""
    from cpythonplus._cli.terminal import complain

    complain(
        command,
        f"no doctor for this process: no folder for its socket ({os.strerror(error)});"
        " set XDG_RUNTIME_DIR, or use --no-doctor",
    )


def _reporter(name: str) -> "Callable[[Mapping[str, object], Run], None]":
    """Return the `activate` of a feature that reports at exit, by a function of reports.py."""

    def activate(values: "Mapping[str, object]", run: Run) -> None:
        from cpythonplus._cli import reports

        getattr(reports, name)(run.pid, values)

    return activate


def _prepare_statistics(
    values: dict[str, str],
    environment: "MutableMapping[str, str]",  # noqa: ARG001
) -> None:
    if "switch" not in values:
        raise ValueError("--format and --output require --stats")


def format_option(*names: str) -> Option:
    """Return the option for the format of a report; the first name is the default."""
    text = f"format of the report ({names[0]})"
    return Option("--format", "format", text, "|".join(names), one_of(names))


def output_option(what: str) -> Option:
    """Return the option for the file of a report; what: its help, `write the report to FILE`."""
    return Option("--output", "output", f"{what}; %p is the PID", "FILE", output_file)


def top_option(default: str = "") -> Option:
    """Return the option for the length of a report."""
    text = f"show only the N largest entries of each table of a text report{default}"
    return Option("--top", "top", text, "N", positive_number, int)


HELP_OPTION = Option("--help", "help", "show this message and exit")
_OUTPUT = output_option("write the report to FILE instead of standard error")
_JOB_SHARE = Option("--job-share", "job_share", JOB_SHARE_TEXT, JOB_SHARE_SHAPE, job_share, float)
_POLICY = Option("--policy", "policy", POLICY_TEXT, POLICY_SHAPE, policy, policy_numbers)
_DUMP_ON = Option(
    "--dump-on",
    "signal",
    "print the stack of each thread and tasklet on SIGNAL: USR1, 10",
    "SIGNAL",
    signal_number,
    int,
)
_STALLS = Option(
    "--stalls",
    "limit_ms",
    "print lines that block others for MS ms (100): GIL, lock, event loop",
    "[=MS]",
    milliseconds,
    float,
    "100",
)
_METRICS = Option(
    "--metrics",
    "address",
    "serve Prometheus metrics of the web application in the program",
    "[HOST:]PORT",
    metrics_address,
)
_DEADLOCK_AFTER = Option(
    "--deadlock-after",
    "after",
    "print a deadlock of threads when it has lasted for S seconds",
    "S",
    seconds,
    float,
)
_MALLOC = Option(
    "--malloc",
    "kind",
    "allocate with jemalloc, mimalloc, glibc-tuned, or the library at a path",
    "KIND",
    allocator,
)
_GIL_PROFILE = Option(
    "--gil-profile",
    "file",
    "write its holds and waits by stack (.folded, .speedscope.json, ...)",
    "FILE",
    profile_file,
)
_STACKLESS = "provide the module stackless: tasklets, channels"
_KINDS = "report only these kinds: exception, closure, class, other"

FEATURES = (
    Feature(
        "gil",
        "threads that wait for I/O get the GIL before threads that compute",
        _activate_gil,
        by_default=True,
        options=(_JOB_SHARE, _POLICY),
        defaults=_policy_default,
        refusal=_gil_refusal,
    ),
    Feature(
        "threads",
        "locks, conditions and queues of threading and queue are native",
        _activate_threads,
        by_default=True,
    ),
    Feature(
        "stackless",
        "`import stackless` provides tasklets and channels",
        _activate_stackless,
        options=(Option("--stackless", "switch", _STACKLESS),),
        refusal=_tasklets_refusal,
    ),
    Feature(
        "doctor",
        "`cpythonplus doctor PID` can examine it, through a private socket",
        _activate_doctor,
        by_default=True,
    ),
    Feature(
        "dump",
        "the stack of each thread and tasklet, printed on a signal",
        _activate_dump,
        options=(_DUMP_ON,),
        refusal=_dump_refusal,
    ),
    Feature(
        "stalls",
        "lines that block other threads or an event loop for long are printed",
        _activate_stalls,
        options=(_STALLS,),
    ),
    Feature(
        "metrics",
        "a server in the program has metrics, by route too",
        _activate_metrics,
        options=(_METRICS,),
    ),
    Feature(
        "deadlocks",
        "a deadlock of threads is printed with the lines of its locks",
        _activate_deadlocks,
        options=(_DEADLOCK_AFTER,),
        refusal=_gil_refusal,
    ),
    Feature(
        "malloc",
        "memory comes from an allocator that returns free memory",
        _activate_malloc,
        options=(_MALLOC,),
        prepare=_prepare_malloc,
    ),
    Feature(
        "cycles",
        "cyclic garbage by the line that causes it, reported when the process ends",
        _reporter("cyclic_garbage"),
        command="cpythonplus doctor cycles",
        options=(
            Option("--kinds", "kinds", _KINDS, "KIND,...", cycle_kinds),
            top_option(),
            Option("--no-hoards", "no_hoards", "leave out the exceptions that are still held"),
            format_option("text", "json", "html"),
            _OUTPUT,
            Option(
                "--children", "children", "also report on Python processes that the program starts"
            ),
        ),
    ),
    Feature(
        "examination",
        "what the program keeps in memory and why, reported when it ends",
        _reporter("examination"),
        command="cpythonplus doctor run",
        options=(
            Option("--growth", "growth", "also show what has grown since the program's start"),
            format_option("text", "json", "html"),
            _OUTPUT,
            top_option(),
        ),
    ),
    Feature(
        "profile",
        "each hold of the GIL and each wait by Python stack, written when the process ends",
        _reporter("profile"),
        options=(_GIL_PROFILE,),
    ),
    # Last: features that it prints first at exit must have been activated before it.
    Feature(
        "statistics",
        "what the scheduler did, reported when the process ends",
        _reporter("statistics"),
        options=(
            Option("--stats", "switch", "report what the scheduler did on standard error at exit"),
            format_option("text", "json", "html"),
            _OUTPUT,
        ),
        prepare=_prepare_statistics,
    ),
)


def python_tag() -> str:
    """Return the kind of this interpreter, as far as an extension must fit it."""
    import sys

    return f"{sys.implementation.cache_tag}{sys.abiflags}"
