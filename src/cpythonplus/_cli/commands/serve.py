"""`cpythonplus serve`: gunicorn, with workers that go on sharing their memory.

gunicorn reads its own options; only options that are needed before it is imported are read here.

If CPYTHONPLUS_DISABLE is set (_base/switch.py), it becomes the stock gunicorn, without our options.
"""

import os
import shlex
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from cpythonplus._base.errors import UnsupportedPlatform
from cpythonplus._cli.arguments import UsageError, take_value
from cpythonplus._cli.commands import run
from cpythonplus._cli.features import FEATURES, tell_no_doctor

_FEATURES = {feature.name: feature for feature in FEATURES}
_ALLOCATOR = _FEATURES["malloc"].options[0]
MALLOC = _ALLOCATOR.flag
NO_DOCTOR = _FEATURES["doctor"].switch_off
OWN = (
    (NO_DOCTOR, "", "`cpythonplus doctor PID` cannot examine the processes."),
    (MALLOC, _ALLOCATOR.metavar or "", f"{_ALLOCATOR.help[0].upper()}{_ALLOCATOR.help[1:]}."),
)
"""Options that are read here: the flag, the name of its value (empty: a switch), help."""


def main(arguments: list[str]) -> int:
    """Serve until the server is stopped, then SystemExit; UsageError without a usable gunicorn."""
    if find_spec("gunicorn") is None:
        raise UsageError("requires the extra: pip install 'cpythonplus[serve]'")
    request = run.Request()
    if run.switch_off(request):
        serve_stock(request, arguments)
    rest, given = without_own(arguments)
    if given[MALLOC]:
        use(given[MALLOC], rest, given, arguments)
    from cpythonplus._doctor import agent
    from cpythonplus.prefork._gunicorn import versions as gunicorn_versions

    try:
        gunicorn_versions.require()
    except UnsupportedPlatform as error:
        raise UsageError(str(error)) from None
    from cpythonplus.prefork._gunicorn import application as gunicorn_application

    # The forked workers have sockets of their own.
    problem = 0 if given[NO_DOCTOR] else agent.start()
    if problem:
        tell_no_doctor("cpythonplus serve", problem)
    gunicorn_application.serve(rest, OWN)


def without_own(arguments: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return the other arguments, and the last value of each of OWN; UsageError."""
    rest: list[str] = []
    given = {flag: "" for flag, _, _ in OWN}
    metavars = {flag: metavar for flag, metavar, _ in OWN}
    words = list(arguments)
    while words:
        flag = words[0].partition("=")[0]
        if flag not in given:
            rest.append(words.pop(0))
            continue
        given[flag] = take_value(flag, words, wanted=bool(metavars[flag]))
        if not given[flag]:
            raise UsageError(f"{flag}: expected a value")
    return rest, given


def use(allocator: str, rest: list[str], given: dict[str, str], arguments: list[str]) -> None:
    """Start anew under the allocator, without the option; glibc's own is only tuned."""
    from cpythonplus.memory import allocators

    environment = run.original_environment()
    try:
        if allocators.kind_of(allocator) == "glibc-tuned":
            allocators.find_library(allocator)
            allocators.trim_regularly()
            return
        allocators.apply(allocator, environment)
    except ValueError as error:
        raise UsageError(f"{MALLOC}: {error}") from None
    front = sys.orig_argv[: len(sys.orig_argv) - len(arguments)]
    again = [NO_DOCTOR] if given[NO_DOCTOR] else []
    try:
        os.execve(sys.executable, [*front, *again, *rest], environment)
    except OSError as error:
        raise UsageError(f"cannot start {sys.executable!r}: {error}") from None


# ---- switched off -------------------------------------------------------------------------------


def serve_stock(request: run.Request, arguments: list[str]) -> NoReturn:
    """Become the stock gunicorn with its own arguments only (does not return)."""
    from_environment = shlex.split(os.environ.get("GUNICORN_CMD_ARGS", ""))
    rest = stock_words(from_environment)
    if rest != from_environment:
        os.environ["GUNICORN_CMD_ARGS"] = shlex.join(rest)
    words = stock_words(arguments)
    script = Path(sysconfig.get_path("scripts"), "gunicorn")
    if script.is_file():
        request.python.set_script([str(script), *words])
    else:
        # The second choice: after USR2 gunicorn would start anew as a file, and `http` lies beside
        # it.
        request.python.program = ["-m", "gunicorn", *words]
    run.become(request)


def stock_words(words: list[str]) -> list[str]:
    """Return the words of a command line without the options that gunicorn does not have.

    Abbreviations count as in argparse: a prefix of an option of gunicorn's is its option.
    """
    from gunicorn.config import KNOWN_SETTINGS

    from cpythonplus.prefork._options import OPTIONS

    ours = {flag: metavar for flag, metavar, _ in OWN}
    ours.update({option.word: option.shape for option in OPTIONS})
    theirs = {word for setting in KNOWN_SETTINGS for word in setting.cli or ()}
    rest: list[str] = []
    left = list(words)
    while left:
        flag = left[0].partition("=")[0]
        meant = {flag} & {*ours} or {word for word in ours if word.startswith(flag)}
        if left[0] == "--":
            return rest + left
        if not flag.startswith("--") or len(meant) != 1 or _begins_one(flag, theirs):
            rest.append(left.pop(0))
            continue
        word = left.pop(0)
        if ours[meant.pop()] and "=" not in word and left:
            left.pop(0)
    return rest


def _begins_one(flag: str, options: set[str]) -> bool:
    return any(option.startswith(flag) for option in options)
