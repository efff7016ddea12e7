"""What docs/explanation/security-model.md says and no other test looks at."""

import json
from pathlib import Path

from cpythonplus.prefork._board import metrics
from tests.support import run_child

ROOT = Path(__file__).resolve().parent.parent.parent

# Each kind of place where a program keeps data, and one of each kind of name.
PROGRAM = """
import functools, json, sys, threading
from cpythonplus._doctor.questions import asked
from cpythonplus._doctor.agent.examining import examine

class NameOfClass:
    def __init__(self, number):
        self.text = f"DATA of an attribute {number}"
        self.table = {f"DATA as a key {number}": f"DATA in a dict {number}"}

@functools.lru_cache(None)
def name_of_function(text):
    return text + "DATA that is cached"

def keep(argument):
    local = "DATA of a local variable"
    try:
        raise KeyError("DATA of an exception", argument, local)
    except KeyError as error:
        hoard.append(error)

hoard = []
for number in range(500):
    keep(NameOfClass(number))
    name_of_function(f"DATA of an argument {number}")
by_name = {f"DATA as a key of many {number}": number for number in range(5000)}

waits = threading.Event()
thread = threading.Thread(target=waits.wait, name="name-of-thread")
thread.start()
report = examine(asked("pid"))
waits.set()
thread.join()
print(json.dumps(report))
"""


def test_a_report_shows_names_and_no_data() -> None:
    text = run_child(PROGRAM, env={"SOME_VARIABLE": "DATA of the environment"}).out
    report = json.loads(text)
    assert [name for name, part in report.items() if "error" in part] == []
    for name in ("NameOfClass", "name-of-thread", "hoard", "keep"):
        assert name in text
    assert "DATA" not in text


def test_metrics_are_for_this_machine_unless_another_is_asked_for() -> None:
    for address in ("0", "127.0.0.1:0", "localhost:0"):
        with metrics.listen(address) as listening:
            assert listening.getsockname()[0] in {"127.0.0.1", "::1"}


def test_the_page_and_how_to_report_are_found() -> None:
    page = "explanation/security-model.md"
    assert page in (ROOT / "docs" / "README.md").read_text()
    assert f"docs/{page}" in (ROOT / "SECURITY.md").read_text()
