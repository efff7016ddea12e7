"""A file that is applied on trial: unless it is confirmed in time, the one before is restored.

A user who changes a tunnel while logged in through it may be cut off by the change. So before the
change, the file that was applied until then is saved, with a time limit, and a separate process
waits for the limit. The timer checks it as well, as the process is gone after a reboot. The limit
counts from the boot, by a clock that nobody sets. After a reboot the trial is over, as /run is
empty. Rejected: the kernel's boot_id, which a container keeps when it is booted again.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpythonplus_sites.host_folder import HostFolder
    from cpythonplus_sites.machine import Machine

RUN = Path("/run/cpythonplus-sites")


@dataclass(frozen=True)
class Trial:
    """until_s: seconds since that boot.  has_before: whether a file was applied before.

    mark: a text that is also in /run until the next boot.
    """

    until_s: float
    mark: str
    has_before: bool

    def left_s(self, machine: Machine, folder: HostFolder) -> float:
        """The seconds until the trial is over; 0 after another boot."""
        if not self.mark or machine.read(_mark_path(folder)) != self.mark:
            return 0.0
        return max(0.0, self.until_s - machine.monotonic_s())


def begin(machine: Machine, folder: HostFolder, limit_s: float) -> Trial:
    """Save the applied file; in a trial within a trial, the first one's saved file stays.

    Raises OSError, SecretError.
    """
    before = trial(machine, folder)
    if before is None:
        text = machine.read(folder.sites_path)
        if text is not None:
            machine.write(folder.before_path, text, mode=0o600)
        has_before = text is not None
    else:
        has_before = before.has_before
    found = Trial(machine.monotonic_s() + limit_s, os.urandom(8).hex(), has_before)
    machine.write(_mark_path(folder), found.mark, mode=0o644)
    machine.write(folder.trial_path, json.dumps(asdict(found)) + "\n", mode=0o600)
    return found


def trial(machine: Machine, folder: HostFolder) -> Trial | None:
    """The current trial, due or not. Raises OSError."""
    text = machine.read(folder.trial_path)
    if text is None:
        return None
    try:
        values = json.loads(text)
        return Trial(float(values["until_s"]), str(values["mark"]), bool(values["has_before"]))
    except (ValueError, LookupError, TypeError):
        return Trial(0.0, "", machine.exists(folder.before_path))


def end(machine: Machine, folder: HostFolder) -> None:
    """End the trial; the applied file stays. Raises OSError."""
    for path in (folder.trial_path, folder.before_path, _mark_path(folder)):
        if machine.exists(path):
            machine.remove(path)


def _mark_path(folder: HostFolder) -> Path:
    return RUN / f"trial{str(folder.path).replace('/', '-')}"
