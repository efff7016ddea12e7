#!/usr/bin/env python3
"""`cpythonplus lint` from a check-out of this repository: nothing is compiled or installed.

    tools/lint_hook.py [options] [PATH ...]

For pre-commit, which keeps a check-out of its own, and for systems that the package is not for. The
linter needs nothing but the standard library; it reads the syntax of the interpreter that runs it.
"""

import sys
from pathlib import Path

OLDEST = (3, 11)


def main() -> int:
    """Run the linter; return its status."""
    if sys.version_info < OLDEST:
        version = ".".join(map(str, sys.version_info[:3]))
        sys.stderr.write(f"cpythonplus lint: Python 3.11 or later is needed, this is {version}\n")
        return 2
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
    from cpythonplus._cli.arguments import UsageError
    from cpythonplus._cli.commands.lint import main as lint
    from cpythonplus._cli.terminal import complain

    try:
        return lint(sys.argv[1:])
    except UsageError as error:
        return complain("cpythonplus lint", str(error))


if __name__ == "__main__":
    sys.exit(main())
