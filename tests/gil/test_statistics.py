"""What is counted, and that the numbers belong together."""

import pytest

from tests.gil.load import run

pytestmark = pytest.mark.needs_gil


def test_zeros_before_anything() -> None:
    run(
        """
        s = gil.statistics()
        assert isinstance(s, gil.Statistics) and s.active is False
        assert s.switches == s.forced_switches == s.requests == s.immediate_requests == 0
        assert s.protected_runs == 0 and s.threads == ()
        for kind in (s.interactive, s.batch):
            assert kind == gil.ClassStatistics() and kind.waits == gil.Times()
        assert s.atomic == gil.AtomicStatistics(0, 0, 0, 0, 0)
        gil.reset_statistics()
        """,
        before="",
    )


def test_the_numbers_belong_together() -> None:
    run(
        """
        import dataclasses, json

        def check(s):
            assert s.active
            assert 0 < s.immediate_requests <= s.requests
            assert 0 < s.forced_switches <= s.switches
            for kind in (s.interactive, s.batch):
                for times in (kind.waits, kind.holds):
                    assert times.count > 0
                    assert 0 < times.p50_ns <= times.p99_ns <= times.max_ns <= times.total_ns
                    assert times.total_ns <= times.max_ns * times.count
            # Not all acquisitions were waited for; all holds ended in one of the classes.
            waits = s.interactive.waits.count + s.batch.waits.count
            holds = s.interactive.holds.count + s.batch.holds.count
            assert waits <= holds + 1

        with Load(cpu=2, io=2) as load:
            until(lambda: gil.statistics().batch.waits.count > 20)
            until(lambda: gil.statistics().immediate_requests > 20)
            load.progress()
            check(gil.statistics())
            s = gil.statistics()
            check(s)
        as_json = s.as_json()
        names = {field.name for field in dataclasses.fields(s)}
        assert set(as_json) == names
        again = json.loads(json.dumps(as_json))
        assert again["interactive"]["waits"]["p99_ns"] == s.interactive.waits.p99_ns
        assert [t["name"] for t in again["threads"]] == [t.name for t in s.threads]
        assert set(again["threads"][0]) == {
            "name", "ident", "native_id", "thread_class", "cpu_ns", "wait_ns", "hold_ns", "waits",
            "switches",
        }
        assert set(again["atomic"]) == {
            "sections", "contended", "overlong", "longest_ns", "abandoned",
        }
        for value, name in ((s, "switches"), (s.atomic, "sections"), (s.threads[0], "name")):
            try:
                setattr(value, name, 1)
            except dataclasses.FrozenInstanceError:
                pass
            else:
                raise AssertionError(name)
        """
    )


def test_threads_by_name() -> None:
    run(
        """
        with Load(cpu=2, io=2) as load:
            def complete():
                rows = {t.name: t for t in gil.statistics().threads}
                used = all(
                    min(t.cpu_ns, t.hold_ns, t.waits, t.wait_ns) > 0 for t in rows.values()
                )
                classes = {rows["cpu-0"].thread_class, rows["cpu-1"].thread_class}
                return used and classes == {"batch"}

            until(complete)
            s = gil.statistics()
            rows = {t.name: t for t in s.threads}
            for thread in (*load.threads, threading.main_thread()):
                row = rows[thread.name]
                assert row.ident == thread.ident and row.native_id == thread.native_id
            assert sum(t.cpu_ns for t in load_rows(rows, load)) <= time.process_time_ns()
            waits = s.interactive.waits.count + s.batch.waits.count
            assert sum(t.waits for t in s.threads) <= waits
        until(lambda: len(gil.statistics().threads) == 1)
        """,
        before="def load_rows(rows, load):\n    return [rows[t.name] for t in load.threads]\n"
        "gil.install()\n",
    )


def test_switches_by_thread() -> None:
    run(
        """
        with Load(cpu=1, io=1) as load:
            until(lambda: gil.statistics().switches > 50)
            load.progress()
            s = gil.statistics()
            assert 0 < sum(t.switches for t in s.threads) <= s.switches
            assert all(t.switches > 0 for t in s.threads), s.threads
        """
    )


def test_reset() -> None:
    run(
        """
        with Load(cpu=1, io=1):
            until(lambda: gil.statistics().requests > 100)
        with atomic():
            pass
        assert gil.statistics().atomic.sections == 1
        # The others' rows may still be there: they go with the threads of the system.
        hold_ns = lambda s: sum(t.hold_ns for t in s.threads if t.name == "MainThread")
        held = hold_ns(gil.statistics())
        gil.reset_statistics()
        s = gil.statistics()
        assert s.requests == s.immediate_requests == s.forced_switches == 0
        assert s.batch == gil.ClassStatistics()
        assert s.atomic == gil.AtomicStatistics()
        assert s.active and hold_ns(s) >= held > 0
        """
    )


def test_while_everything_runs_from_several_threads() -> None:
    run(
        """
        def body(i):
            for j in range(100):
                s = gil.statistics()
                assert s.switches >= 0 and len(s.threads) >= 4
                if i == 0 and j % 10 == 0:
                    gil.reset_statistics()

        def churn():
            while not done:
                thread = threading.Thread(target=time.time)
                thread.start()
                thread.join()

        done = False
        churning = threading.Thread(target=churn)
        with Load(cpu=1, io=2):
            churning.start()
            together(body)
            done = True
            churning.join()
        """
    )


def test_a_thread_that_python_does_not_know() -> None:
    # The probe's own thread, and any other that the interpreter only met in passing, is gone again.
    run(
        """
        import _thread

        inside, leave = _thread.allocate_lock(), _thread.allocate_lock()
        inside.acquire()
        leave.acquire()

        def raw():
            time.sleep(0)
            inside.release()
            leave.acquire()

        _thread.start_new_thread(raw, ())
        inside.acquire()
        (row,) = (t for t in gil.statistics().threads if t.ident != threading.get_ident())
        assert row.name and row.native_id > 0
        leave.release()
        until(lambda: len(gil.statistics().threads) == 1)
        """
    )
