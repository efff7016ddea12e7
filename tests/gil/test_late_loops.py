"""Callbacks that block an event loop while nobody waits for the GIL show their line."""

import json

import pytest

from tests.support import FREE_THREADED, run_child

pytestmark = pytest.mark.skipif(FREE_THREADED, reason="there is no GIL to schedule")

PROGRAM = """\
import json, select, socket, subprocess, sys, threading, time
from cpythonplus import gil, threads
from cpythonplus.gil._stall_watch import watch_stalls
gil.install()
threads.patch()
told = []
assert watch_stalls({limit_ms}, told.append)
import asyncio

def main(function):
    asyncio.run(function())

exec(compile({source!r}, "program", "exec"))
print(json.dumps([each.as_json() for each in gil.stalls()]))
"""
# Each blocks in the line that is marked, in the function `blocks`: for long, since a busy machine
# may keep the thread that looks from looking.
PLANTED = {
    "time.sleep in a coroutine": """async def blocks():
    await asyncio.sleep(0)
    time.sleep(2)  #!
main(blocks)
""",
    "a call further inside": """def inner():
    select.select([], [], [], 2)  #!
async def blocks():
    inner()
main(blocks)
""",
    "a callback": """def blocks():
    time.sleep(2)  #!
async def calls():
    asyncio.get_running_loop().call_soon(blocks)
    await asyncio.sleep(0.02)
main(calls)
""",
    "a callback after a time": """def blocks():
    time.sleep(2)  #!
async def calls():
    asyncio.get_running_loop().call_later(0.01, blocks)
    await asyncio.sleep(0.02)
main(calls)
""",
    "another task": """async def blocks():
    subprocess.run(["sleep", "2"])  #!
async def calls():
    task = asyncio.create_task(blocks())
    await task
main(calls)
""",
    "a lock that another thread has": """lock = threading.Lock()
def has():
    with lock:
        ready.set()
        time.sleep(2)
ready = threading.Event()
async def blocks():
    threading.Thread(target=has).start()
    ready.wait()
    with lock:  #!
        pass
main(blocks)
""",
    "Python code": """def compute():
    end = time.monotonic() + 2
    while time.monotonic() < end: pass  #!
async def blocks():
    compute()
main(blocks)
""",
    "a loop of another thread": """async def blocks():
    time.sleep(2)  #!
thread = threading.Thread(target=main, args=(blocks,), name="loop")
thread.start()
thread.join()
""",
}
# Each lasts for longer than the limit, which a loaded machine does not exceed by itself.
NONE = {
    "a loop that waits": """async def waits():
    await asyncio.sleep(1.5)
main(waits)
""",
    "a task that lets others run": """async def gives_way():
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        time.sleep(0.01)
        await asyncio.sleep(0)
main(gives_way)
""",
    "a thread that blocks beside": """async def waits():
    await asyncio.to_thread(time.sleep, 1.5)
main(waits)
""",
    "a loop that has ended": """async def nothing():
    pass
main(nothing)
time.sleep(1.5)
""",
}


def marked(source: str) -> set[int]:
    return {n for n, line in enumerate(source.splitlines(), 1) if line.endswith("#!")}


@pytest.mark.parametrize("name", PLANTED)
def test_the_callback_and_the_line_of_a_late_loop(name: str) -> None:
    source = PLANTED[name]
    child = run_child(PROGRAM.format(limit_ms=100, source=source))
    late = [each for each in json.loads(child.out) if each["kind"] == "loop"]
    assert late, child.out
    longest = max(late, key=lambda each: each["hold_ns"])
    own = [each for each in longest["stack"] if each["file"] == "program"]
    assert own[-1]["line"] in marked(source)
    assert own[0]["function"] == "blocks"
    assert longest["hold_ns"] >= 100e6
    assert longest["thread"] == ("loop" if name == "a loop of another thread" else "MainThread")


@pytest.mark.parametrize("name", NONE)
def test_a_loop_that_is_not_late(name: str) -> None:
    child = run_child(PROGRAM.format(limit_ms=500, source=NONE[name]))
    assert [each for each in json.loads(child.out) if each["kind"] == "loop"] == []


def test_a_late_loop_is_told() -> None:
    source = PLANTED["another task"]
    tells = "import atexit\natexit.register(lambda: print(*told, file=sys.stderr))\n"
    child = run_child(
        PROGRAM.replace("told = []", f"told = []\n{tells}").format(limit_ms=100, source=source)
    )
    assert "MainThread: its event loop waited for a callback for " in child.err
    assert ", in blocks; at " in child.err
    assert "program:2 in blocks" in child.err


def test_uvloop() -> None:
    pytest.importorskip("uvloop", reason="uvloop is not installed")
    source = PLANTED["a call further inside"].replace(
        "main(blocks)",
        """async def first():
    # A loop in C is looked for once a second, and asked when it is busy.
    while not any(each.name == "cpythonplus loops" for each in threading.enumerate()):
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.01)
    await blocks()
import uvloop
with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(first())
""",
    )
    child = run_child(PROGRAM.format(limit_ms=100, source=source))
    late = [each for each in json.loads(child.out) if each["kind"] == "loop"]
    longest = max(late, key=lambda each: each["hold_ns"])
    assert longest["stack"][-1]["line"] == 2
    assert longest["stack"][-1]["file"] == "program"
