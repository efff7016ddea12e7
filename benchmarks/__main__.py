"""`python -m benchmarks`, from the root of a checkout."""

import sys

from benchmarks.command import main

sys.exit(main())
