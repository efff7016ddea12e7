"""`cpythonplus run --stackless`: programs for Stackless Python as they are."""

from pathlib import Path

import pytest

from tests.cli.support import PYTHON, assert_refused, execute, run
from tests.cli.test_children import carried

PING_PONG = """\
import stackless

def player(name, mine, other):
    while True:
        ball = mine.receive()
        print(name, ball)
        if ball == 4:
            break
        other.send(ball + 1)

ping, pong = stackless.channel(), stackless.channel()
stackless.tasklet(player)("ping", ping, pong)
stackless.tasklet(player)("pong", pong, ping)
stackless.tasklet(ping.send)(1)
stackless.run()
print(stackless.getcurrent().is_main, stackless.runcount, stackless.current is stackless.main)
"""
PRODUCER = """\
from stackless import *

def producer(shop, goods):
    for each in goods:
        shop.send(each)
        schedule()
    shop.send_exception(StopIteration)

def consumer(shop, basket):
    for each in shop:
        basket.append(each)

shop, basket = channel(), []
tasklet(producer)(shop, "abc")
buyer = tasklet(consumer)(shop, basket)
run()
print(basket, buyer.alive, getruncount())
"""
ACTORS = """\
import stackless

class Actor:
    def __init__(self):
        self.box = stackless.channel()
        stackless.tasklet(self.live)()

    def live(self):
        while True:
            sender, message = self.box.receive()
            if message == "end":
                return
            self.hear(sender, message)

class Counter(Actor):
    total = 0
    def hear(self, sender, message):
        self.total += message
        sender.send(self.total)

class Forwarder(Actor):
    def __init__(self, target):
        super().__init__()
        self.target = target
    def hear(self, sender, message):
        self.target.box.send((sender, message))

counter = Counter()
forwarder = Forwarder(counter)
answers = stackless.channel()
for number in (1, 2, 3):
    forwarder.box.send((answers, number))
    print(answers.receive())
forwarder.box.send((None, "end"))
counter.box.send((None, "end"))
stackless.run()
try:
    answers.receive()
except RuntimeError as error:
    print(type(error).__name__)
"""
KILLED = """\
import stackless

def worker(box):
    try:
        box.receive()
    except TaskletExit:
        print("ended")

it = stackless.tasklet(worker)(stackless.channel())
stackless.run()
it.kill()
"""
SPAWN = """\
import multiprocessing, subprocess, sys
from package import shared
def work():
    import stackless
    line = stackless.channel()
    stackless.tasklet(line.send)("there")
    print(line.receive(), flush=True)
if __name__ == "__main__":
    work()
    print(shared.stackless is sys.modules["stackless"], flush=True)
    child = multiprocessing.get_context("spawn").Process(target=work)
    child.start(); child.join()
    subprocess.run([sys.executable, "-c", "import stackless; print('there')"])
"""


@pytest.mark.parametrize(
    ("program", "out"),
    [
        (PING_PONG, "ping 1\npong 2\nping 3\npong 4\nTrue 1 True\n"),
        (PRODUCER, "['a', 'b', 'c'] False 1\n"),
        (ACTORS, "1\n3\n6\nRuntimeError\n"),
        (KILLED, "ended\n"),
    ],
    ids=["ping pong", "producer", "actors", "killed"],
)
def test_programs(program: str, out: str, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(program)
    result = run("--stackless", str(script))
    assert (result.status, result.out, result.err) == (0, out, "")


def test_modules_and_children(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "shared.py").write_text("import stackless\n")
    script = tmp_path / "program.py"
    script.write_text(SPAWN)
    result = run("--stackless", str(script))
    assert (result.out, result.err) == ("there\nTrue\nthere\nthere\n", "")


def test_it_is_the_module_of_the_package() -> None:
    code = "import stackless, cpythonplus.stackless as ours; print(stackless is ours)"
    assert run("--stackless", "-c", code).out == "True\n"


def test_there_is_none_without_the_option() -> None:
    code = "import sys; print([n for n in sys.modules if 'stackless' in n or 'tasklet' in n])"
    assert run("-c", code).out == "[]\n"
    result = run("-c", "import stackless")
    assert result.status == 1
    assert "ModuleNotFoundError" in result.err


@pytest.mark.parametrize(("own", "status"), [(True, 2), (False, 0)])
def test_where_tasklets_cannot_work(own: bool, status: int) -> None:
    """The program does not start; a child of it does, without."""
    code = f"""\
import os
from cpythonplus import _native
_native.tasklets_refusal = lambda: "the moon is in the wrong phase"
from cpythonplus._cli import startup
carried = os.environ.pop("LATER")
os.environ["CPYTHONPLUS_RUN"] = carried.replace("pid=1", f"pid={{os.getpid() if {own} else 1}}")
startup.activate()
"""
    later = carried(features={"stackless": {"switch": "1"}})
    result = execute([PYTHON, "-c", code], env={"LATER": later})
    line = "cpythonplus run: stackless: cpythonplus.tasklets: the moon is in the wrong phase\n"
    assert (result.status, result.out, result.err) == (status, "", line)
    if own:
        assert_refused(result)
