#!/usr/bin/env python3
"""`cpythonplus-lint` from a checkout of the repository: nothing is compiled or installed.

    lint/hook.py [options] [PATH ...]

The pre-commit hook is this file: pre-commit keeps a checkout, and would install its root, which is
another distribution and has C. The linter needs the standard library alone, and reads the syntax of
the interpreter that runs it.
"""

import sys
from pathlib import Path

OLDEST = (3, 10)


def main() -> int:
    """Run the linter; return its status."""
    if sys.version_info < OLDEST:
        version = ".".join(map(str, sys.version_info[:3]))
        sys.stderr.write(f"cpythonplus-lint: Python 3.10 or later is needed, this is {version}\n")
        return 2
    sys.path.insert(0, str(Path(__file__).resolve().parent / "src"))
    from cpythonplus_lint.command import main as lint

    return lint()


if __name__ == "__main__":
    sys.exit(main())
