"""systemd's part for machines that have none: what rendered units start, started as they say."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from sites.tests.testbed.namespaces import TIMEOUT_S, wait_until
from sites.tests.testbed.network import must

if TYPE_CHECKING:
    from sites.tests.testbed.bed import Site
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


def render_units(site: Site) -> None:
    """Put the units into /etc/systemd, as apply does it where systemd runs."""
    must(site, "render", "--out", "/run/rendered")
    site.gateway.run("mkdir", "-p", UNITS)
    site.gateway.run("cp", "-r", f"/run/rendered{UNITS}/.", UNITS)


class Timer:
    """A timer unit and the service that it starts."""

    def __init__(self, machine: Machine, name: str) -> None:
        self._machine = machine
        timer = machine.read(f"{UNITS}/{name}.timer")
        service = machine.read(f"{UNITS}/{name}.service")
        (self.interval_s,) = map(int, re.findall(r"^OnUnitInactiveSec=(\d+)$", timer, re.MULTILINE))
        (self.accuracy_s,) = map(int, re.findall(r"^AccuracySec=(\d+)$", timer, re.MULTILINE))
        (self._line,) = re.findall(r"^ExecStart=(.*)$", service, re.MULTILINE)
        self._process: Process | None = None

    def start(self) -> None:
        """Run the service again and again, as late as systemd may do it."""
        pause = self.interval_s + self.accuracy_s
        loop = f'while :; do "$@" >/dev/null; echo "ran $?"; sleep {pause}; done'
        self._process = self._machine.start("sh", "-c", loop, "sh", *shlex.split(self._line))

    def text(self) -> str:
        """What its journal would hold."""
        assert self._process is not None
        return self._process.text()

    def ran(self, count: int) -> None:
        """Wait until it ran so often."""
        longest_s = TIMEOUT_S + count * (self.interval_s + self.accuracy_s)
        wait_until(
            lambda: self.text().count("ran ") >= count,
            f"{count} runs of the timer",
            timeout=longest_s,
        )
