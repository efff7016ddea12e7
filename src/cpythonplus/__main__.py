"""``python -m cpythonplus``: the same as the ``cpythonplus`` command."""

import sys

from cpythonplus.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
