"""List what a program uses of eventlet and gevent, and what to write instead.

    python -m cpythonplus.tasklets.migrate PATH...

PATH is a file or a folder. Python files are parsed, not run; in lists of requirements, scripts and
configurations it looks for the two names. The last line counts. Exit status: 0 if nothing is left
to write, 1 otherwise, 2 for a path that does not exist.
"""

import argparse
import io
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from cpythonplus._base.contents import contents
from cpythonplus._base.text.visible import visible
from cpythonplus.tasklets.migrate._names import NONE, STAYS, WRITE
from cpythonplus.tasklets.migrate._uses import Use, python_uses, text_uses

_TEXT_NAMES = ("requirements*.txt", "Procfile", "Dockerfile*", "*.sh", "*.cfg", "*.toml", "*.ini")
_YAML = ("*.yml", "*.yaml", "*.service")
_ABOVE = {WRITE: "write instead", NONE: "no counterpart", STAYS: "may stay"}


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for each in sorted(path.rglob("*")):
        hidden = any(part.startswith(".") for part in each.relative_to(path).parts)
        if hidden or not os.path.isfile(each):  # noqa: PTH113  # is_file() raises EACCES
            continue
        if each.suffix == ".py" or any(each.match(name) for name in (*_TEXT_NAMES, *_YAML)):
            yield each


def _uses(path: Path) -> list[Use]:
    data = contents(path)
    if path.suffix != ".py":
        return list(text_uses(data.decode(errors="replace")))
    return python_uses(data)


def _say(lines: list[str]) -> bool:
    """Print the lines; a reader that has gone away (`| head`) is no error. Return success."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        print(*map(visible, lines), sep="\n", flush=True)
    except OSError as error:
        # The rest would be flushed, and fail, again at the interpreter's end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if not isinstance(error, BrokenPipeError):
            print(f"migrate: standard output: {error.strerror}", file=sys.stderr)
            return False
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """List the uses in files and folders; see the module's description."""
    parser = argparse.ArgumentParser(
        prog="python -m cpythonplus.tasklets.migrate",
        description="List what a program uses of eventlet and gevent, and what to write instead.",
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a file or a folder")
    options = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    lines = []
    files = unread = 0
    for path in options.paths:
        if not os.path.exists(path):  # noqa: PTH110  # exists() raises ENAMETOOLONG
            parser.error(f"no such file or folder: {path}")
        for file in _files(path):
            try:
                uses = _uses(file)
            except (SyntaxError, ValueError, OSError, RecursionError, MemoryError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                lines.append(f"{file}: not read: {reason or 'too deeply nested'}")
                unread += 1
                continue
            files += bool(uses)
            for use in uses:
                counts[use.advice.kind] += 1
                said = f": {use.advice.text}" if use.advice.text else ""
                lines.append(f"{file}:{use.line}: {use.name}: {_ABOVE[use.advice.kind]}{said}")
    lines.append(
        f"{counts.total()} uses in {files} files: {counts[WRITE]} to write anew, "
        f"{counts[NONE]} without a counterpart, {counts[STAYS]} may stay"
        + (f"; {unread} files not read" if unread else "")
    )
    if not _say(lines):
        return 2
    return 1 if counts[WRITE] or counts[NONE] or unread else 0


if __name__ == "__main__":
    sys.exit(main())
