"""What tests with other people's servers share: Python packages in a cache folder, a client.

What cannot be installed skips the test with a message. Nothing of it is installed into the system
or into the interpreter that runs the tests.
"""

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests.servers import Server, cached, install
from tests.support import child_environment
from tools.setup_env import fingerprint, lock_file

PYTHON_TAG = sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag


def packages(name: str, *, needs: str) -> list[str]:
    """Return the folders for PYTHONPATH with a dependency group: none if `needs` is importable."""
    if importlib.util.find_spec(needs) is not None:
        return []

    lock = lock_file(name)

    def fill(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
        install(
            [*pip, "install", "--target", str(folder), "--require-hashes", "-r", str(lock)],
            why=f"{name} cannot be installed",
        )

    content = fingerprint(lock.read_text())[:8]
    return [str(cached(f"{name}-{PYTHON_TAG}-{content}", fill))]


def python_path(*folders: str) -> dict[str, str]:
    """Return the environment's PYTHONPATH with `folders` behind what is there."""
    parts = [os.environ.get("PYTHONPATH", ""), *folders]
    return {"PYTHONPATH": os.pathsep.join(filter(None, parts))}


class Client:
    """A client of a server with workers: each question is a process of its own."""

    def __init__(self, server: Server, folder: Path, env: dict[str, str], prelude: str) -> None:
        self.server = server
        self._folder = folder
        self._env = env
        self._prelude = dedent(prelude)

    def ask(self, code: str) -> Any:  # noqa: ANN401  # JSON
        """Run the prelude and `code`, and return what they have put into `answer`."""
        program = f"{self._prelude}\n{dedent(code)}\nprint(json.dumps(answer))\n"
        done = subprocess.run(
            [sys.executable, "-c", program],
            check=False,
            cwd=self._folder,
            env=child_environment(self._env),
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr + self.server.text()
        return json.loads(done.stdout.splitlines()[-1])

    def ends(self) -> None:
        """Stopped, it leaves nothing behind."""
        assert self.server.stop() == 0, self.server.text()
        assert self.server.processes() == set()
