"""The event loop that sleeps for a thread's tasklets: its end."""

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
