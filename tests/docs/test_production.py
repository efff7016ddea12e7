"""Commands, options and metrics that the pages on production name are there."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.docs import pages
from tests.prefork.serving import APP, running
from tests.support import LOAD, child_environment

pytestmark = [pytest.mark.slow, pytest.mark.any_version]

HOW_TO = pages.ROOT / "docs" / "how-to"
NAMES = ("production.md", "containers.md", "../reference/serve.md")
TEXTS = {name: (HOW_TO / name).read_text() for name in NAMES}


def execute(words: list[str], folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    (folder / "app.py").write_text(dedent(APP))
    return subprocess.run(
        [sys.executable, "-m", *words],
        check=False,
        cwd=folder,
        env=child_environment({"PYTHONPATH": str(folder), **env}),
        capture_output=True,
        text=True,
        timeout=LOAD * 60,
    )


def test_the_steps_of_a_roll_out_are_command_lines(tmp_path: Path) -> None:
    pytest.importorskip("gunicorn", reason="gunicorn is not installed")
    steps = re.findall(r"^\| \d \| `(.*?)` \|", TEXTS["production.md"], re.MULTILINE)
    assert len(steps) == 4
    for step in steps:
        words = shlex.split(step)
        check = ["--check-config"] if words[1] == "serve" else []
        if words[1] == "run":
            words.insert(2, "--show")
        done = execute([*words, *check], tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), (step, done)


def test_the_image_starts_a_server(tmp_path: Path) -> None:
    pytest.importorskip("gunicorn", reason="gunicorn is not installed")
    found = re.search(r"^CMD (\[.*\])$", TEXTS["containers.md"], re.MULTILINE)
    assert found is not None
    done = execute([*json.loads(found[1]), "--check-config"], tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done


@pytest.mark.parametrize("value", ["0", "1"])
def test_both_take_preload_from_the_variable(tmp_path: Path, value: str) -> None:
    pytest.importorskip("gunicorn", reason="gunicorn is not installed")
    env = {"GUNICORN_CMD_ARGS": "--preload", "CPYTHONPLUS_DISABLE": value}
    done = execute(["cpythonplus", "serve", "app:app", "--print-config"], tmp_path, **env)
    assert re.search(r"^preload_app\s+= True$", done.stdout, re.MULTILINE), done


def test_the_metrics_have_these_names(tmp_path: Path) -> None:
    named = {
        name for text in TEXTS.values() for name in re.findall(r"`(cpythonplus_\w+)[`{]", text)
    }
    assert len(named) >= 3
    with running(tmp_path, "--metrics", "/metrics") as server:
        server.ready(1)
        shown = server.get("/metrics")
        assert {name for name in named if f"# TYPE {name} " not in shown} == set()
        reasons = set(re.findall(r'reason="(\w+)"', shown))
        table = TEXTS["../reference/serve.md"].partition("by reason:")[2].partition("\n## ")[0]
        assert set(re.findall(r"`([a-z_]+)`", table)) == reasons
        assert server.stop() == 0
