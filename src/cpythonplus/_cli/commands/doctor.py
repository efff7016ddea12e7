"""`cpythonplus doctor`: examines the memory of a program; one word for each examination."""

# On the start-up path: importing pathlib would cost more than all of this.
# ruff: noqa: PTH109, PTH116

import os
import sys

from cpythonplus._cli import interpreter_options
from cpythonplus._cli.arguments import UsageError, help_line, unknown
from cpythonplus._cli.commands import run
from cpythonplus._cli.features import FEATURES, HELP_OPTION, Feature, Option
from cpythonplus._cli.terminal import show

PROGRAMS = {
    "run": "run a program and examine it when it ends",
    "cycles": "run a program and name the lines that leave cyclic garbage",
}

HELP = """\
usage: cpythonplus doctor EXAMINATION [options] ...
       cpythonplus doctor [options] PID

Shows what uses a program's memory: what it holds, how much of that is
resident, why memory is not returned, and what to do.

start a program and examine it:
{programs}

examine running processes:
{processes}

  cpythonplus doctor EXAMINATION --help   describes one examination.

  The process must have been started by `cpythonplus run` or `serve`. Python
  3.14 and later do not need that if this is the same version. It is paused only
  briefly. Only `trim` modifies it. `attach` and `growth` copy it for a moment,
  which takes up to its resident memory once more; where the machine or its
  container has less, they report without owners. py-spy shows the stacks of any
  other process, and `memray attach` what it allocates.

examples:
  cpythonplus doctor run app.py --port 8000
  cpythonplus doctor list
  cpythonplus doctor 4711
  cpythonplus doctor watch 4711 --format html --output 4711.html
"""
PROGRAM_HELP = """\
usage: {command} [options] PROGRAM [arguments ...]

PROGRAM is SCRIPT, -m MODULE, -c CODE, or - for standard input. It runs as
under `python`. When it ends, {report}

options:
{options}

  -X, -W, -O, -u, -I, -E, -B, -P and similar options are passed on to `python`,
  and so are those of the interpreter that runs this command.

examples:
  {command} app.py --port 8000
  {command} --format {example} -m pytest tests
"""
REPORTS = {
    "run": """\
it is examined. The report on standard error
shows what it holds in memory, what is resident, why it is not returned, and
what to do.""",
    "cycles": """\
the report on standard error names the root
causes of cyclic garbage, one a line: source line, variable, amount, how to
break it. Then it names the places that still hold exceptions with their
frames, one a line.""",
}
EXAMPLES = {"run": "html --output report.html", "cycles": "json --output cycles.json"}
OWN_OPTIONS = (
    Option("--gil", "gil", "with the GIL scheduled, as under `cpythonplus run`"),
    Option("--threads", "threads", "with native locks and queues, as under `cpythonplus run`"),
    HELP_OPTION,
)

NOTHING_TO_RUN = "expected a script, -m MODULE, -c CODE or -"


def main(arguments: list[str]) -> int:
    """Run the examination that the arguments name; returns the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        return show(help_text())
    word = arguments[0]
    if word in PROGRAMS and not (word == "cycles" and _is_about_a_process(arguments[1:])):
        return _run(word, arguments[1:])
    from cpythonplus._cli.commands import doctor_live

    live = {each.name: each for each in doctor_live.EXAMINATIONS}
    if word in live:
        return doctor_live.main(live[word], arguments[1:])
    if not word.startswith("-") and not word.isdecimal():
        raise unknown("examination", word, [*PROGRAMS, *live], "cpythonplus doctor")
    return doctor_live.main(live["attach"], arguments)


def _is_about_a_process(arguments: list[str]) -> bool:
    """Whether the arguments name a process, not a program: only options and one number."""
    from cpythonplus._cli.commands import doctor_live

    own = {option.flag for option in doctor_live.CYCLES.options}
    words = iter(arguments)
    operands = []
    for word in words:
        if word in own:
            next(words, None)
        elif word.partition("=")[0] not in own:
            operands.append(word)
    return len(operands) == 1 and operands[0].isdecimal()


def _run(word: str, arguments: list[str]) -> int:
    """Become the examined program (does not return); or show the help."""
    feature = _feature(word)
    known: run.Known = {option.flag: (None, option) for option in OWN_OPTIONS}
    known.update({option.flag: (feature, option) for option in feature.options})
    request = run.parse(arguments, known, feature.command)
    if "help" in request.given:
        from cpythonplus._cli.commands.doctor_live import CYCLES, help_text

        more = f"\n{help_text(CYCLES)}" if word == CYCLES.name else ""
        return show(f"{program_help_text(word)}{more}")
    if not request.python.telling:
        check_program(request.python)
    given = request.values.setdefault(feature.name, {})
    # The program is examined, so change no more of it than necessary.
    request.off.update({"gil", "threads", "doctor"} - request.given)
    if "children" not in given:
        request.given.add(run.NO_CHILDREN.field)
    return run.become(request)


def check_program(options: interpreter_options.Options) -> None:
    """UsageError if there is certainly no program to run.

    Only two cases are certain: a script that does not exist, a module whose first name no finder
    knows. Python itself tells the rest in one line (a folder without `__main__.py`, a sub-module,
    an unreadable file): finding out here would mean importing the program's packages twice.
    """
    if not options.kind:
        raise UsageError(NOTHING_TO_RUN)
    if options.kind == "-m":
        check_module(options.name, safe_path=bool(options.letters & {"I", "P"}))
    elif options.kind == "script":
        try:
            os.stat(options.name)
        except (FileNotFoundError, NotADirectoryError):
            raise UsageError(f"the script {options.name!r} does not exist") from None
        except (OSError, ValueError):
            return


def check_module(name: str, *, safe_path: bool) -> None:
    """UsageError if no finder knows the first name of the dotted `name`, as `python -m` would look.

    Nothing is imported, so a parent package may extend its own path.
    """
    top = name.partition(".")[0]
    if not top or top in sys.modules:
        return
    saved = sys.path
    # The first entry belongs to this command: the current folder (-m) or the console script's.
    path = list(saved) if sys.flags.safe_path else saved[1:]
    sys.path = path if safe_path or sys.flags.safe_path else [os.getcwd(), *path]
    try:
        found = any(finder.find_spec(top, None) is not None for finder in sys.meta_path)
    except Exception:  # noqa: BLE001  # an import hook of the program: Python reports it
        found = True
    finally:
        sys.path = saved
    if not found:
        raise UsageError(f"there is no module named {name!r}")


def _feature(word: str) -> Feature:
    return next(each for each in FEATURES if each.command == f"cpythonplus doctor {word}")


def help_text() -> str:
    """Return the text of `cpythonplus doctor --help`."""
    from cpythonplus._cli.commands import doctor_live

    live = {each.usage: each.summary for each in doctor_live.EXAMINATIONS}
    programs, processes = (
        "\n".join(help_line(usage, summary, "  ", 18) for usage, summary in each.items())
        for each in (PROGRAMS, live)
    )
    return HELP.format(programs=programs, processes=processes)


def program_help_text(word: str) -> str:
    """Return the text of `cpythonplus doctor run --help`, or of another word."""
    feature = _feature(word)
    return PROGRAM_HELP.format(
        command=feature.command,
        report=REPORTS[word],
        options=run.option_lines((*feature.options, *OWN_OPTIONS)),
        example=EXAMPLES[word],
    )
