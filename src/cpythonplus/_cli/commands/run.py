"""`cpythonplus run`: becomes `python` with the same program and the features switched on.

The runner executes nothing of the program. It writes the features into the environment variable
CPYTHONPLUS_RUN and replaces itself (exec) by the same interpreter with the same options and the
program; `cpythonplus.pth` then activates the features before the program begins. So argv,
`__main__`, sys.path, exit status, tracebacks and signals are not imitated: they are Python's own.
Rejected: running the program in this process by `runpy`. It needs no second interpreter (9 ms), but
leaves frames in tracebacks, has a `__main__` of its own, and differs in `-i`, signals and argv
bytes.

A program can see: CPYTHONPLUS_RUN in os.environ; with -I or -E an option -X in /proc/self/cmdline
(not in sys.orig_argv); modules named cpythonplus.* in sys.modules; the native types of `threads`,
and its finder in front of sys.meta_path; one function of atexit, called last; with `--stackless` a
module of that name and a builtin TaskletExit; with `--dump-on` a signal's action; with `--malloc`
LD_PRELOAD and the allocator's settings; under the console script, `sys.orig_argv[0]` as in that
script's first line.

The interpreter itself reports mistakes in its options and its program; without a program it reads
standard input or prompts. Rejected: looking for the script or the module here, for one line and
status 2. `python -m` exits with 1, and the module would be searched twice.

Children: interpreters of the same installation that the program starts (multiprocessing, subprocess
with sys.executable) inherit the environment and so the features; `--no-children` takes the variable
out of the environment as soon as it is read. Another Python, or another installation of
cpythonplus, sees in the variable that it is not meant and ignores it. An interpreter with -I or -E
ignores the variable like PYTHON*; `run -I` itself passes an option -X that makes this one count.
Rejected for that: the pid in the variable, which exec keeps; whoever sets the variable may know the
pid (a set-user-ID program that becomes `python -I`). A `cpythonplus run` inside of another replaces
the outer one's choice as a whole, nothing is merged.

If CPYTHONPLUS_DISABLE is set (_base/switch.py), no feature is on: it is `python` with the program.
"""

# On the start-up path: importing pathlib would cost more than all of this.
# ruff: noqa: PTH110, PTH112, PTH115, PTH118, PTH120, PTH121, PTH123

import os
import sys

from cpythonplus._base import switch
from cpythonplus._cli import interpreter_options
from cpythonplus._cli.arguments import UsageError, help_line, take_value, unknown
from cpythonplus._cli.features import (
    COMMAND,
    FEATURES,
    HELP_OPTION,
    MARK,
    OUTSIDE_SITE,
    VARIABLE,
    Feature,
    Option,
    Run,
    python_tag,
    without_allocator,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import NoReturn

    Known = dict[str, tuple[Feature | None, Option | None]]

HELP = """\
usage: cpythonplus run [options] [PROGRAM] [arguments ...]

PROGRAM is SCRIPT, -m MODULE, -c CODE, or - for standard input.

Runs a program exactly as `python` would, with these features switched on.

  cpythonplus run app.py --port 8000     `python app.py --port 8000`
  cpythonplus run -m gunicorn app:app    `python -m gunicorn app:app`
  cpythonplus run < app.py               `python < app.py`; `run` alone prompts
  cpythonplus run --show app.py          what would be switched on
  cpythonplus doctor PID                 what such a process keeps in memory

switched on, each with the option that switches it off:
{features}

the GIL:
{of_gil}

statistics:
{statistics}

other options:
{own}

advanced:
{advanced}

  All options of `python` but -h and --help are passed on to it, and so are
  those of the interpreter that runs this command.
"""
NO_CHILDREN = Option(
    "--no-children", "no_children", "the same features in the Python processes that it starts"
)
OWN_OPTIONS = (
    Option("--show", "show", "show what would be switched on and run, and exit"),
    HELP_OPTION,
)
_OF_GIL = ("--job-share", "--gil-profile")
"""Options of the first screen of the help; the parameters of the policy are advanced."""
HOME = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))


class Request:
    """A command line of `run`, read.

    values: carried texts by feature name, then by field; off: features switched off; given: own
    options that were given, by field; python: options for the interpreter, and program.
    """

    __slots__ = ("given", "off", "python", "values")

    def __init__(self) -> None:
        self.values: dict[str, dict[str, str]] = {}
        self.off: set[str] = set()
        self.given: set[str] = set()
        self.python = interpreter_options.Options()

    def enabled(self) -> dict[str, dict[str, str]]:
        """Return the values of the features that are on.

        `--no-X` wins over X's options, so that it can be put in front of a long command line.
        """
        return {
            feature.name: self.values.get(feature.name, {})
            for feature in FEATURES
            if feature.name not in self.off and (feature.by_default or feature.name in self.values)
        }


def main(arguments: list[str]) -> int:
    """Become the program (does not return), or return an exit status; UsageError for mistakes.

    `arguments` are those after the word `run`.
    """
    request = parse(arguments, known_options(), COMMAND)
    if "help" in request.given:
        from cpythonplus._cli.terminal import show

        return show(help_text())
    if "show" in request.given:
        from cpythonplus._cli.terminal import show

        inherit_options(request)
        is_off = switch_off(request)
        line = f"{switch.VARIABLE} is set: nothing is switched on\n" if is_off else ""
        return show(line + show_text(request))
    return become(request)


def become(request: Request) -> "NoReturn":
    """Become the requested program (does not return); UsageError if that is impossible."""
    inherit_options(request)
    if switch_off(request):
        switch.tell(f"{switch.VARIABLE} is set: this is stock Python")
    start(request)


def switch_off(request: Request) -> bool:
    """Switch each feature off if CPYTHONPLUS_DISABLE says so; returns whether it does."""
    try:
        is_off = switch.disabled()
    except ValueError as error:
        raise UsageError(str(error)) from None
    if is_off:
        request.off.update(feature.name for feature in FEATURES)
    return is_off


def inherit_options(request: Request) -> None:
    """Put the options of the running interpreter in front of the given ones."""
    inherited = interpreter_options.of_this_process(sys.orig_argv)
    request.python.words[:0] = inherited.words
    request.python.letters |= inherited.letters


def parse(arguments: list[str], known: "Known", command: str) -> Request:
    """Read the command line; UsageError for mistakes in it.

    By hand, because argparse costs 5 ms and cannot tell `-um http.server` from its own options.
    known: the options that are not the interpreter's; command: errors refer to its `--help`.
    """
    request = Request()
    words = list(arguments)
    while words:
        word = words[0]
        if word in ("--", "-") or not word.startswith("-"):
            request.python.set_script(words)
            break
        flag = word.partition("=")[0]
        if word == "-h":
            flag = "--help"
        if flag in known:
            feature, option = known[flag]
            if option is not None and option.optional and word == flag:
                value = option.optional
                words.pop(0)
            else:
                value = take_value(flag, words, wanted=option is not None and bool(option.metavar))
            _note(request, feature, option, flag, value)
            continue
        used = interpreter_options.take(words, request.python)
        if request.python.letters & {"h", "?"}:
            request.given.add("help")
        if used == 0:
            raise unknown("option", flag, list(known), command)
        del words[:used]
    return request


def known_options() -> "Known":
    """Return the options by flag; no feature: `run`'s own; no option: switches the feature off."""
    known: Known = {option.flag: (None, option) for option in (NO_CHILDREN, *OWN_OPTIONS)}
    for each in offered():
        if each.by_default:
            known[each.switch_off] = (each, None)
        known.update({option.flag: (each, option) for option in each.options})
    return known


def offered() -> list[Feature]:
    """Return the features that are `run`'s own."""
    return [feature for feature in FEATURES if feature.command == COMMAND]


def _note(
    request: Request, feature: Feature | None, option: Option | None, flag: str, value: str
) -> None:
    """Store an option of `run`, which `known_options` describes."""
    if option is None:
        if feature is not None:
            request.off.add(feature.name)
    elif feature is None:
        request.given.add(option.field)
    else:
        try:
            request.values.setdefault(feature.name, {})[option.field] = option.check(value)
        except ValueError as error:
            raise UsageError(f"{flag}: {error}") from None


def start(request: Request) -> "NoReturn":
    """Replace this process by the interpreter, the program and the features of `request`."""
    features = {} if request.python.telling else request.enabled()
    environment = original_environment()
    without_allocator(environment)
    set_search_path(environment, request.python.letters if features else None, features)
    environment.pop(VARIABLE, None)
    prepare(features, environment, request.python.letters)
    if features:
        run = Run(
            HOME,
            python_tag(),
            os.getpid(),
            features,
            children=NO_CHILDREN.field not in request.given,
        )
        environment[VARIABLE] = run.encode()
    command = [sys.orig_argv[0] if sys.orig_argv else sys.executable]
    if features and request.python.letters & {"E", "I"}:
        command += ["-X", MARK]
    command += [*request.python.words, *request.python.program]
    try:
        # argv[0] as typed: Python finds its own folder, and its venv, by it.
        program = sys.executable or os.readlink("/proc/self/exe")
        os.execve(program, command, environment)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot start {sys.executable!r}: {error}") from None


def prepare(
    features: dict[str, dict[str, str]], environment: dict[str, str], letters: set[str]
) -> None:
    """Let the features change the environment and the carried texts; UsageError if one cannot."""
    for feature in FEATURES:
        if feature.name not in features or feature.prepare is None:
            continue
        known = dict(environment)
        try:
            feature.prepare(features[feature.name], environment)
        except ValueError as error:
            raise UsageError(f"{feature.name}: {error}") from None
        ignored = [name for name in environment if name.startswith("PYTHON") and name not in known]
        if ignored and letters & {"E", "I"}:
            raise UsageError(f"{feature.name}: with -I or -E python ignores {ignored[0]}")


def set_search_path(
    environment: dict[str, str], letters: set[str] | None, wanted: "Iterable[str]" = ()
) -> None:
    """Make the started interpreter activate the features; UsageError if it could not.

    If the package is installed in a site folder, `cpythonplus.pth` does it with any options but -S.
    Elsewhere (PYTHONPATH, `pip install --target`) no .pth file is read. There PYTHONPATH gets a
    folder with a `sitecustomize` in front, which activates the features, takes that folder out of
    sys.path again and goes on to the user's own `sitecustomize`. The program sees the folder in
    os.environ["PYTHONPATH"], because its children need it too; sys.path is as without it. With -E
    or -I PYTHONPATH is not read, so that is refused. Rejected: refusing altogether (an unpacked
    wheel can be tried like this), and `-c` or `-m` with a starter module (that is no longer
    python's own `__main__`). letters: flags of the interpreter; None: there is nothing to activate.
    wanted: features by name.
    """
    entries = [
        entry
        for entry in environment.get("PYTHONPATH", "").split(os.pathsep)
        if entry != OUTSIDE_SITE
    ]
    if entries != environment.get("PYTHONPATH", "").split(os.pathsep):
        # an outer run added it
        environment["PYTHONPATH"] = os.pathsep.join(entries)
        if entries in ([], [""]):
            del environment["PYTHONPATH"]
    if letters is None:
        return
    if "S" in letters:
        defaults = {each.name: each.switch_off for each in FEATURES if each.by_default}
        other_way = f", or use {' '.join(defaults.values())}" if {*wanted} <= {*defaults} else ""
        raise UsageError(
            "with -S python reads no site-packages folder, and nothing could be activated"
            f" (omit -S{other_way})"
        )
    if in_site_folder(letters):
        return
    if letters & {"E", "I"}:
        raise UsageError(
            f"with -I or -E cpythonplus must be installed in a site-packages folder of this Python,"
            f" and {os.path.dirname(HOME)!r} is not one"
        )
    if os.pathsep in OUTSIDE_SITE:
        raise UsageError(f"PYTHONPATH cannot hold {OUTSIDE_SITE!r}: it contains a colon")
    rest = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = OUTSIDE_SITE + (os.pathsep + rest if rest else "")


def in_site_folder(letters: set[str]) -> bool:
    """Whether an interpreter with these flags reads the `cpythonplus.pth` beside this package."""
    import site  # already loaded at start-up, unless with -S

    parent = os.path.dirname(HOME)
    if not os.path.exists(os.path.join(parent, "cpythonplus.pth")):
        return False
    folders = site.getsitepackages()
    if site.ENABLE_USER_SITE and not letters & {"s", "I"}:
        folders.append(site.getusersitepackages())
    if parent in folders:
        return True
    return any(os.path.isdir(folder) and os.path.samefile(folder, parent) for folder in folders)


def original_environment() -> dict[str, str]:
    """Return the environment that this interpreter was started with.

    In the C locale Python sets LC_CTYPE for itself and its children (PEP 538). If it were passed
    on, it would look like the user's own choice, and would switch off the UTF-8 mode of the C
    locale.
    """
    environment = dict(os.environ)
    if environment.get("LC_CTYPE") in ("C.UTF-8", "C.utf8", "UTF-8"):
        try:
            with open("/proc/self/environ", "rb") as file:
                block = file.read().split(b"\0")
        except OSError:
            return environment
        given = [entry for entry in block if entry.startswith(b"LC_CTYPE=")]
        if not given:
            del environment["LC_CTYPE"]
        else:
            environment["LC_CTYPE"] = os.fsdecode(given[0].partition(b"=")[2])
    return environment


def help_text() -> str:
    """Return the text of `cpythonplus run --help`; the most needed options come first."""
    features = [help_line(x.switch_off, x.summary) for x in offered() if x.by_default]
    groups: dict[str, list[str]] = {"of_gil": [], "statistics": [], "advanced": []}
    for each in offered():
        for option in each.options:
            group = "of_gil" if option.flag in _OF_GIL else each.name
            lines = groups.get(group, groups["advanced"])
            lines.append(option_lines([option], each.defaults()))
    return HELP.format(
        features="\n".join([*features, option_lines([NO_CHILDREN])]),
        own=option_lines(OWN_OPTIONS),
        **{name: "\n".join(lines) for name, lines in groups.items()},
    )


def option_lines(options: "Iterable[Option]", defaults: "Mapping[str, object]" = {}) -> str:  # noqa: B006
    """Return the lines of a help text for options; defaults: texts to append, by field."""
    return "\n".join(
        help_line(
            f"{option.flag}{'' if option.optional else ' '}{option.metavar or ''}",
            option.help + (f" ({defaults[option.field]})" if option.field in defaults else ""),
        )
        for option in options
    )


def _refused_facts() -> list[str]:
    from cpythonplus import _interp
    from cpythonplus._base.text.text_tables import wrapped
    from cpythonplus.gil._control import free_threaded

    lines: list[str] = []
    groups: dict[str, list[_interp.Fact]] = {}
    one_reason = free_threaded()
    for fact in _interp.facts():
        if fact.state == "refused":
            groups.setdefault(fact.refusal if one_reason else fact.name, []).append(fact)
    for group in groups.values():
        names = [fact.name for fact in group]
        lines.append(f"refused     {', '.join(names)}: {group[0].refusal}")
        for each in dict.fromkeys(each for name in names for each in _interp.sentences(name)):
            lines += wrapped(each, " " * 12, " " * 14)
    return lines


def show_text(request: Request) -> str:
    """Return the text of `--show`: each feature, on or off, its values, and the command."""
    enabled = request.enabled()
    lines = _refused_facts()
    for feature in offered():
        on = feature.name in enabled
        lines.append(f"{feature.name:<10}  {'on ' if on else 'off'}  {feature.summary}")
        if on and (refusal := feature.refusal()):
            lines.append(f"            does not work here: {refusal}")
        if not on:
            continue
        given = enabled[feature.name]
        defaults = feature.defaults()
        for option in feature.options:
            if option.field in given:
                value = f" {given[option.field]}" if option.metavar else ""
                lines.append(f"            {option.flag}{value}")
            elif option.field in defaults:
                lines.append(f"            {option.flag} {defaults[option.field]} (default)")
        if feature.by_default:
            lines.append(f"            {feature.switch_off} switches it off")
    lines.append(f"children    {'off' if NO_CHILDREN.field in request.given else 'on'}")
    import shlex

    command = shlex.join([sys.executable, *request.python.words, *request.python.program])
    lines.append(f"command     {command}")
    return "\n".join(lines) + "\n"
