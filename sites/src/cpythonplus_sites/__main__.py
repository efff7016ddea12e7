"""``python -m cpythonplus_sites``: the same as the ``cpythonplus-sites`` command."""

import sys

from cpythonplus_sites.commands.sites import main

if __name__ == "__main__":
    sys.exit(main())
