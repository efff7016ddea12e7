"""The handler of faults on the stacks of tasklets swallows no signal that somebody sent."""

import signal

import pytest

from tests.support import SANITIZED, run_child


@pytest.mark.skipif(SANITIZED, reason="the sanitizer handles the signal itself")
def test_a_signal_that_somebody_sent_is_not_swallowed() -> None:
    """No instruction failed, so none fails again once the handler has gone."""
    run_child(
        """
        import signal
        from cpythonplus.tasklets import run, tasklet

        tasklet(int)()
        run()
        signal.raise_signal(signal.SIGSEGV)
        print("still here")
        """,
        status=-signal.SIGSEGV,
    )
