"""`python -m benchmarks`, from the root of a checkout."""

import sys
from importlib.util import find_spec

if find_spec("cpythonplus") is None:
    sys.exit("benchmarks: cpythonplus is not installed for this Python; `make bench` installs it")

from benchmarks.command import main

sys.exit(main())
