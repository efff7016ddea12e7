"""The event loop that sleeps for a thread's tasklets: its beginning and its end."""

from tests.support import run_child


def test_a_turn_that_was_on_its_way_is_not_given_after_the_end() -> None:
    """A loop that is being closed would else run tasklets, and be ended in the middle again."""
    child = run_child("""
        import asyncio
        from cpythonplus.tasklets import run, tasklet
        from cpythonplus.tasklets.io import _hub as hub

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


def test_a_signal_handler_may_switch_while_the_loop_sleeps() -> None:
    """Who it switches to looks after descriptors, and so takes what was to wake the loop."""
    child = run_child("""
        import signal, threading
        from cpythonplus.tasklets import io, locks, schedule, tasklet

        done = locks.Event()
        rounds = []

        def work():
            for n in range(100):
                rounds.append(n)
                schedule()
            done.set()

        def at_signal(number, frame):
            if frame.f_code.co_name == "select" and not rounds:  # the loop sleeps
                tasklet(work)()
                for _ in range(50):  # after some, somebody looks after descriptors
                    schedule()

        def send():
            while not rounds:
                signal.pthread_kill(main, signal.SIGUSR1)

        signal.signal(signal.SIGUSR1, at_signal)
        main = threading.main_thread().ident
        here, there = io.socket.socketpair()
        tasklet(here.recv)(1)
        sender = threading.Thread(target=send)
        sender.start()
        done.wait()
        sender.join()
        print(len(rounds))
    """)
    assert (child.out, child.err) == ("100\n", "")


def test_no_turn_is_lost_by_what_a_signal_handler_raises() -> None:
    """Wherever in the hub's code it is raised: here between a turn and the next one."""
    child = run_child("""
        import logging
        from cpythonplus import _native
        from cpythonplus.tasklets import io, schedule, tasklet
        from cpythonplus.tasklets.io import _hub as hub

        class Raises:
            # As a signal's handler may, once: right after the others had their turn.
            def __getattr__(self, name):
                calls.extend([name] * (name == "io_guard_turns"))
                if name == "io_guard_turns" and len(calls) == 4:
                    raise KeyError("of a handler")
                return getattr(_native, name)

        def busy():
            while len(calls) < 8:
                schedule()
            there.send(b"x")

        calls = []
        logging.disable()
        here, there = io.socket.socketpair()
        tasklet(busy)()
        hub._native = Raises()
        print(here.recv(1))
    """)
    assert (child.out, child.err) == ("b'x'\n", "")


def test_one_that_the_loop_itself_has_switched_to_gets_its_turn() -> None:
    """A callback of the loop sends; the receiver is runnable still when the loop goes to sleep."""
    child = run_child("""
        from cpythonplus.tasklets import channel, io, schedule, tasklet
        from cpythonplus.tasklets.io import _hub as hub

        def works():
            sent.receive()
            schedule()
            done.send("done")

        def asks_the_loop():
            io.sleep(0.001)
            loop = hub._hub_of_thread().loop
            loop.call_soon(sent.send, None)
            loop.call_soon_threadsafe(int)

        sent, done = channel(), channel()
        here, there = io.socket.socketpair()
        tasklet(here.recv)(1)
        tasklet(works)()
        tasklet(asks_the_loop)()
        print(done.receive())
        there.send(b"x")
    """)
    assert (child.out, child.err) == ("done\n", "")


def test_an_abandoned_tasklet_waits_for_no_descriptor() -> None:
    """It was counted as if its channel were one: nobody saw that all others were stuck."""
    child = run_child("""
        import gc
        from cpythonplus.tasklets import channel, io, tasklet
        class Stays(tasklet):
            # Does not end when it is garbage.
            def __del__(self): pass
        def garbage():
            task = Stays(lambda: it.receive())
            it = channel()  # younger, so that the collector comes to the tasklet first
            task().run()
        here, there = io.socket.socketpair()
        io.call_later(0.001, there.send, b"x")
        here.recv(1)
        garbage()
        gc.collect()
        try:
            channel().receive()
        except RuntimeError as error:
            print(str(error).splitlines()[0])
    """)
    assert child.out == "Deadlock: the last runnable tasklet cannot be blocked.\n"
    assert child.err == ""


def test_one_that_was_killed_is_freed() -> None:
    child = run_child("""
        import gc
        from cpythonplus import _native
        from cpythonplus.tasklets.io import _hub as hub

        for _ in range(5):
            hub.start()
            hub._loops().hub.tasklet.kill()
        gc.collect()
        print(sum(type(each) is hub.Hub for each in gc.get_objects()))
    """)
    assert (child.out, child.err) == ("1\n", "")
