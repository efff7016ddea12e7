"""``python -m cpythonplus_lint``: the same as the ``cpythonplus-lint`` command."""

import sys

from cpythonplus_lint.command import main

if __name__ == "__main__":
    sys.exit(main())
