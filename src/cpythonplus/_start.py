"""Called by `cpythonplus.start`: what starts `cpythonplus run` from Python 3.15 on (PEP 829).

Every interpreter that finds the package calls it while it imports `site`, whatever it is started
for. So it looks at one variable, and imports nothing that is not loaded then. `cpythonplus.pth`
does the same on older versions; where both files are, 3.15 leaves the line of the `.pth` out.
"""

import os
import sys


def begin() -> None:
    """Activate what CPYTHONPLUS_RUN asks for, if anything; see cpythonplus._cli.startup."""
    if os.environ.get("CPYTHONPLUS_RUN") and (
        "cpythonplus_run" in sys._xoptions  # noqa: SLF001  # there is no other way to ask
        or not sys.flags.ignore_environment
    ):
        from cpythonplus._cli.startup import activate

        activate()
