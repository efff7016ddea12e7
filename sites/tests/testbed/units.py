"""systemd's part for machines that have none: what rendered units start, started as they say."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sites.tests.testbed.namespaces import Machine, Process

UNITS = "/etc/systemd/system"
CREDENTIALS = "/run/credentials"


class Unit:
    """One instance of a template unit, as it stands in a machine."""

    def __init__(self, machine: Machine, template: str, instance: str) -> None:
        self._machine = machine
        self._text = machine.read(f"{UNITS}/{template}").replace("%i", instance)

    def _values(self, key: str) -> list[str]:
        return re.findall(rf"^{key}=(.*)$", self._text, re.MULTILINE)

    def start_oneshot(self) -> None:
        """Run each ExecStart=; a minus sign before one says that it may fail."""
        for line in self._values("ExecStart"):
            command = shlex.split(line.removeprefix("-"))
            run = self._machine.try_run if line.startswith("-") else self._machine.run
            run(*command)

    def supervise(self) -> Process:
        """Run ExecStart= as User= again and again, as Restart=always does, but without a pause."""
        assert self._values("Restart") == ["always"]
        assert self._values("StartLimitIntervalSec") == ["0"], "systemd would give up"
        (user,), (line,) = self._values("User"), self._values("ExecStart")
        assert user != "root"
        self._credentials(user)
        command = line.replace("${CREDENTIALS_DIRECTORY}", CREDENTIALS)
        # Not runuser, which stays in between and stops with a program that is stopped.
        become = 'setpriv --reuid="$0" --regid="$0" --clear-groups'
        loop = f'while :; do {become} "$@"; sleep 0.2; done'
        return self._machine.start("sh", "-c", loop, user, *shlex.split(command))

    def _credentials(self, user: str) -> None:
        """LoadCredential=NAME:PATH: a copy that the unit's user can read, and nobody else."""
        self._machine.run("install", "-d", "-m", "0500", "-o", user, CREDENTIALS)
        for value in self._values("LoadCredential"):
            name, path = value.split(":")
            self._machine.run("install", "-m", "0400", "-o", user, path, f"{CREDENTIALS}/{name}")
