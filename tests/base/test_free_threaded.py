"""A build without a GIL: what reads the interpreter's private layouts refuses before it looks."""

import subprocess
import sys
from collections.abc import Mapping

import pytest

from cpythonplus import _native
from cpythonplus.memory.allocators import AllocatorError, find_library
from tests.support import FREE_THREADED, child_environment, run_child

on_free_threaded = pytest.mark.skipif(not FREE_THREADED, reason="needs a free-threaded build")

# Each function of the extension by the one word that says what it does there: how it is called, in
# a process of its own, for it may crash.
REFUSED = {
    "gil_start": "(5000, 0.05, 0, 0)",
    "memory_attributes_of": "(Thing())",
    "memory_exclusively_held": "((), ())",
    "memory_fixed_costs": "()",
    "memory_free_lists_text": "()",
    "memory_gc_objects_of": "(None)",
    "memory_refuse_free_threaded": "()",
    "memory_seal_record": "(5, (), (), None)",
    "memory_table_of": "({1: 2})",
    "prefork_immortalize": "([], [], [], None)",
    "prefork_instances_of": "(Thing)",
}
# They say why not in another way, or there is nothing of what they look for.
ANSWERED = {
    "memory_arenas": "isinstance(_native.memory_arenas([], 3), str)",
    "memory_close_cells": "_native.memory_close_cells((), 0, []) == 0",
    "memory_share_row": "_native.memory_share_row({'x': 1}) == {'x': 1}",
    "memory_sharing_refusal": "'free-threaded' in _native.memory_sharing_refusal()",
    "memory_trim_pools": "_native.memory_trim_pools() == ('no-pools', 0, 0)",
    "prefork_fill_pools": "_native.prefork_fill_pools() == -1",
    "prefork_refusal": "_native.prefork_refusal()",
    "tasklets_refusal": "_native.tasklets_refusal()",
}
# Public functions of the interpreter, its public structures, what is proven there, or nothing.
WORKING = {
    "gil_active",
    "gil_behind_fork",
    "gil_profile_line",
    "gil_profile_rows",
    "gil_profile_stack",
    "gil_profile_start",
    "gil_profile_stop",
    "gil_prove",
    "gil_proven",
    "gil_rehearse",
    "gil_reset_statistics",
    "gil_statistics",
    "gil_stop",
    "gil_take_stalls",
    "gil_thread_use",
    "gil_threads",
    "gil_watch_stalls",
    "memory_agent_after_fork_child",
    "memory_agent_after_fork_parent",
    "memory_agent_before_fork",
    "memory_agent_collects",
    "memory_agent_parse",
    "memory_agent_path",
    "memory_agent_start",
    "memory_agent_stop",
    "memory_agent_wait",
    "memory_bare_frame",
    "memory_c_heap",
    "memory_census",
    "memory_clear_garbage",
    "memory_clear_weakrefs",
    "memory_components",
    "memory_exceptions_among",
    "memory_foreign_malloc",
    "memory_frame_generator",
    "memory_frame_variables",
    "memory_guarded",
    "memory_heap_counts",
    "memory_instance_dict",
    "memory_large_blocks",
    "memory_malloc_bytes",
    "memory_malloc_totals",
    "memory_mimalloc",
    "memory_object_bytes",
    "memory_object_parts",
    "memory_owners",
    "memory_profilers",
    "memory_profilers_set",
    "memory_read_words",
    "memory_reference_label",
    "memory_referrers_among",
    "memory_referrers_of",
    "memory_resident_bytes",
    "memory_root_path",
    "memory_root_paths",
    "memory_segments",
    "memory_sort_garbage",
    "memory_traceback_holds",
    "memory_trim_c_heap",
    "memory_trim_count",
    "memory_trim_pause",
    "memory_trim_regularly",
    "memory_trim_resume",
    "memory_walk_dicts",
    "prefork_keep_forever",
    "prefork_thaw",
    "threads_count_states",
    "threads_introduce",
    "threads_line_of",
    "threads_note_lines",
    "threads_operand",
    "threads_present_waits",
    "threads_set_main",
    "threads_stand",
}
ROOMS = ("gil_", "memory_", "prefork_", "tasklets_", "threads_", "io_")
# What users call; each raises UnsupportedPlatform.
PUBLIC = (
    "memory.key_sharing()",
    "type('Row', (memory.Record,), {})",
    "memory.attribute('name')",
    "memory.attribute_asgi(None)",
    "memory.attribute_celery()",
    "memory.attribute_wsgi(None)",
    "memory.caches()",
    "threads.waits()",
    "importlib.import_module('cpythonplus.tasklets')",
)

PREAMBLE = """
import importlib
from cpythonplus import UnsupportedPlatform, _native, memory, prefork, threads


class Thing:
    def __init__(self):
        self.one = 1


def refused(call):
    try:
        call()
    except RuntimeError as error:
        assert "\\n" not in str(error) and "free-threaded" in str(error) or "GIL" in str(error)
        return
    raise AssertionError("not refused")

"""


def test_each_function_of_the_extension_is_judged() -> None:
    """Who adds one says what it does without a GIL; tasklets are refused as a whole."""
    names = {name for name in dir(_native) if name.startswith(ROOMS)}
    if not FREE_THREADED:
        names = {name for name in names if not name.startswith(("tasklets_", "io_"))} | {
            "tasklets_refusal"
        }
    assert names == set(REFUSED) | set(ANSWERED) | WORKING


@on_free_threaded
@pytest.mark.parametrize("environment", [{}, {"PYTHON_GIL": "1"}], ids=["off", "on"])
@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_before_anything_is_read(name: str, environment: Mapping[str, str]) -> None:
    code = f"refused(lambda: _native.{name}{REFUSED[name]})"
    run_child(PREAMBLE + code, env=environment)


@on_free_threaded
@pytest.mark.parametrize("name", ANSWERED)
def test_it_says_that_there_is_nothing(name: str) -> None:
    run_child(PREAMBLE + f"assert {ANSWERED[name]}")


@on_free_threaded
@pytest.mark.parametrize("environment", [{}, {"PYTHON_GIL": "1"}], ids=["off", "on"])
@pytest.mark.parametrize("call", PUBLIC)
def test_a_public_function_says_why(call: str, environment: Mapping[str, str]) -> None:
    run_child(PREAMBLE + f"refused(lambda: {call})", env=environment)


@on_free_threaded
@pytest.mark.parametrize("name", ["jemalloc", "mimalloc"])
def test_a_program_is_not_started_with_settings_that_end_it(name: str) -> None:
    with pytest.raises(AllocatorError, match="free-threaded"):
        find_library(name)


@on_free_threaded
def test_the_gil_stays_off() -> None:
    code = "import cpythonplus._native, sys; print(sys._is_gil_enabled())"
    environment = child_environment()
    environment.pop("PYTHON_GIL", None)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert done.stdout == "False\n"


@on_free_threaded
@pytest.mark.parametrize("environment", [{}, {"PYTHON_GIL": "1"}], ids=["off", "on"])
def test_nothing_is_scheduled_and_sections_exclude_each_other(
    environment: Mapping[str, str],
) -> None:
    run_child(
        """
        import os, threading
        from cpythonplus import gil
        from cpythonplus.gil import atomic

        assert gil.install() is False and not gil.active()
        total = 0

        def add():
            global total
            for _ in range(20_000):
                with atomic():
                    total += 1

        threads = [threading.Thread(target=add) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert total == 80_000

        # A child of a fork finds no section of a thread that it does not have.
        inside, leave = threading.Event(), threading.Event()

        def section():
            with atomic():
                inside.set()
                leave.wait()

        thread = threading.Thread(target=section)
        thread.start()
        inside.wait()
        threading.Timer(0.01, leave.set).start()
        pid = os.fork()
        if pid == 0:
            with atomic():
                os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        thread.join()
        """,
        env={**environment, "PYTHONWARNINGS": "ignore"},
    )
