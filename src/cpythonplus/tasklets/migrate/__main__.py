"""List what a program uses of eventlet and gevent, and what to write instead.

    python -m cpythonplus.tasklets.migrate PATH...

PATH is a file or a folder. Python files are parsed, not run; in lists of requirements, scripts and
configurations it looks for the two names. The last line counts. Exit status: 0 if nothing is left
to write, 1 otherwise, 2 for a path that does not exist.
"""

import argparse
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

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
        if hidden or not each.is_file():
            continue
        if each.suffix == ".py" or any(each.match(name) for name in (*_TEXT_NAMES, *_YAML)):
            yield each


def _uses(path: Path) -> list[Use]:
    if path.suffix != ".py":
        return list(text_uses(path.read_text(errors="replace")))
    with tokenize.open(path) as file:
        return python_uses(file.read())


def main(arguments: Sequence[str] | None = None) -> int:
    """List the uses in files and folders; see the module's description."""
    parser = argparse.ArgumentParser(
        prog="python -m cpythonplus.tasklets.migrate",
        description="List what a program uses of eventlet and gevent, and what to write instead.",
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a file or a folder")
    options = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    files = unread = 0
    for path in options.paths:
        if not path.exists():
            parser.error(f"no such file or folder: {path}")
        for file in _files(path):
            try:
                uses = _uses(file)
            except (SyntaxError, UnicodeDecodeError, ValueError, OSError) as error:
                print(f"{file}: not read: {error}")
                unread += 1
                continue
            files += bool(uses)
            for use in uses:
                counts[use.advice.kind] += 1
                said = f": {use.advice.text}" if use.advice.text else ""
                print(f"{file}:{use.line}: {use.name}: {_ABOVE[use.advice.kind]}{said}")
    print(
        f"{counts.total()} uses in {files} files: {counts[WRITE]} to write anew, "
        f"{counts[NONE]} without a counterpart, {counts[STAYS]} may stay"
        + (f"; {unread} files not read" if unread else "")
    )
    return 1 if counts[WRITE] or counts[NONE] or unread else 0


if __name__ == "__main__":
    sys.exit(main())
