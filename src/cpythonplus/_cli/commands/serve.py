"""`cpythonplus serve`: gunicorn, with workers that go on sharing their memory.

gunicorn's options are gunicorn's to read; here only what has to be known before it is imported.
"""

import os
import sys
from importlib.util import find_spec

from cpythonplus._base.errors import UnsupportedPlatform
from cpythonplus._cli.arguments import UsageError, take_value

MALLOC = "--malloc"


def main(arguments: list[str]) -> int:
    """Serve until the server is stopped, then SystemExit; UsageError without a gunicorn to use."""
    if find_spec("gunicorn") is None:
        raise UsageError("requires the extra: pip install 'cpythonplus[serve]'")
    rest, allocator = without_malloc(arguments)
    if allocator:
        use(allocator, rest, arguments)
    from cpythonplus.memory import _agent as agent
    from cpythonplus.prefork import _gunicorn_versions as gunicorn_versions

    try:
        gunicorn_versions.require()
    except UnsupportedPlatform as error:
        raise UsageError(str(error)) from None
    from cpythonplus.prefork import _gunicorn_application as gunicorn_application

    agent.start()  # the workers, which are forked, have sockets of their own
    gunicorn_application.serve(rest)


def without_malloc(arguments: list[str]) -> tuple[list[str], str]:
    """Return the other arguments, and the value of the last `--malloc`; UsageError without one."""
    rest, value = [], ""
    words = list(arguments)
    while words:
        if words[0].partition("=")[0] != MALLOC:
            rest.append(words.pop(0))
            continue
        value = take_value(MALLOC, words, wanted=True)
        if not value:
            raise UsageError(f"{MALLOC}: expected a value")
    return rest, value


def use(allocator: str, rest: list[str], arguments: list[str]) -> None:
    """Begin anew under the allocator, without the option; glibc's own is only told."""
    from cpythonplus._cli.commands.run import original_environment
    from cpythonplus.memory import allocators

    environment = original_environment()
    try:
        if allocators.kind_of(allocator) == "glibc-tuned":
            allocators.find_library(allocator)
            allocators.trim_regularly()
            return
        allocators.apply(allocator, environment)
    except ValueError as error:
        raise UsageError(f"{MALLOC}: {error}") from None
    front = sys.orig_argv[: len(sys.orig_argv) - len(arguments)]
    try:
        os.execve(sys.executable, [*front, *rest], environment)
    except OSError as error:
        raise UsageError(f"cannot start {sys.executable!r}: {error}") from None
