"""What is left out where tasklets work on greenlet."""

import pytest

from cpythonplus import tasklets


def own_engine(reason: str) -> pytest.MarkDecorator:
    """Leave a test out on greenlet."""
    return pytest.mark.skipif(tasklets.engine == "greenlet", reason=f"on greenlet {reason}")


own_stacks = own_engine("there is one C stack for all, and the collector cannot look into it")
own_ends = own_engine("a finaliser of the interpreter's end may be a greenlet's, which main awaits")
own_nesting = own_engine("it is not seen which C functions a tasklet that waits is in")
