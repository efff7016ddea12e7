"""The event loop that sleeps for a thread's tasklets: its beginning and its end."""

from tests.support import run_child


def test_a_turn_that_was_on_its_way_is_not_given_after_the_end() -> None:
    """A loop that is being closed would else run tasklets, and be ended in the middle again."""
    child = run_child("""
        import asyncio
        from cpythonplus.tasklets import run, tasklet
        from cpythonplus.tasklets.io import hub

        ran = []
        tasklet(ran.append)(1)
        loop = asyncio.new_event_loop()
        turns = hub.Turns(loop, ours=False)
        turns.end()
        loop.run_until_complete(asyncio.sleep(0))
        assert ran == []
        loop.close()
        run()
        assert ran == [1]
        print("fine")
    """)
    assert (child.out, child.err) == ("fine\n", "")


def test_a_log_handler_may_wait_for_the_first_loop() -> None:
    """asyncio logs each new loop: what sends that would make one for itself, and so on."""
    child = run_child("""
        import logging
        from cpythonplus.tasklets import io

        class Sender(logging.Handler):
            def emit(self, record):
                told.append(record.getMessage())
                io.sleep(0.001)
                io.wait_writable(here.fileno())

        here, there = io.socket.socketpair()
        told = []
        logging.getLogger().addHandler(Sender())
        logging.getLogger().setLevel(logging.DEBUG)
        logging.debug("one")
        assert told == ["one"], told
        logging.getLogger("asyncio").debug("two")
        assert told == ["one", "two"], told
        print("fine")
    """)
    assert (child.out, child.err) == ("fine\n", "")
