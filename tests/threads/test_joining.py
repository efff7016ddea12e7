"""`threads.join`: Thread.join with an answer."""

import threading

import pytest

from cpythonplus import threads


def test_an_ended_thread() -> None:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    assert threads.join(thread) is True
    assert threads.join(thread, 0) is True
    assert threads.join(thread, timeout=10) is True


@pytest.mark.parametrize("timeout", [0, 0.001, -1])
def test_a_thread_that_goes_on(timeout: float) -> None:
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        assert threads.join(thread, timeout) is False
    finally:
        end.set()
    assert threads.join(thread, 60) is True


def test_the_end_ends_the_wait() -> None:
    """The answer comes with the thread's end, not with the time-out."""
    going, end = threading.Event(), threading.Event()

    def body() -> None:
        going.set()
        end.wait()

    thread = threading.Thread(target=body)
    thread.start()
    going.wait()
    threading.Timer(0.01, end.set).start()
    assert threads.join(thread, threading.TIMEOUT_MAX) is True


def test_a_thread_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    assert threads.join(thread) is True


def test_misuse_is_told_as_by_thread_join() -> None:
    unstarted = threading.Thread(target=lambda: None)
    started = threading.Thread(target=lambda: None)
    started.start()
    with pytest.raises(RuntimeError, match="before it is started"):
        threads.join(unstarted)
    with pytest.raises(RuntimeError, match="cannot join current thread"):
        threads.join(threading.current_thread())
    with pytest.raises(TypeError):
        threads.join(started, "soon")  # type: ignore[arg-type]
    assert threads.join(started)


def test_a_time_out_that_is_too_large() -> None:
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        with pytest.raises(OverflowError):
            threads.join(thread, 1e300)
    finally:
        end.set()
    assert threads.join(thread)


def test_a_subclass_with_a_join_of_its_own() -> None:
    class Worker(threading.Thread):
        asked: object = "never"

        def join(self, timeout: float | None = None) -> None:
            self.asked = timeout
            super().join(timeout)

    worker = Worker(target=lambda: None)
    worker.start()
    assert threads.join(worker, 7) is True
    assert worker.asked == 7
