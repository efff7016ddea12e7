"""What is left out where tasklets work on greenlet."""

import pytest

from cpythonplus import tasklets

own_stacks = pytest.mark.skipif(
    tasklets.engine == "greenlet",
    reason="on greenlet there is one C stack for all, and the collector cannot look into it",
)
