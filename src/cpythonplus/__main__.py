"""``python -m cpythonplus``: the same as the ``cpythonplus`` command."""

import sys

from cpythonplus._cli.main import main

if __name__ == "__main__":
    sys.exit(main())
