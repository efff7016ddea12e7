"""A file that is applied on trial: unless it is confirmed in time, the one before comes back.

Who changes a tunnel while logged in through it may be cut off by the change. So before it is made,
the file that was applied until then is put aside, with a time limit, and a process of its own waits
for that. The timer looks as well, for after a reboot nobody waits any more: the limit counts from
the boot, by a clock that nobody sets, and another boot is late in any case.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpythonplus_sites.host_folder import HostFolder
    from cpythonplus_sites.machine import Machine

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Trial:
    """until_s: seconds since that boot.  has_before: whether a file was applied before."""

    until_s: float
    boot: str
    has_before: bool

    def left_s(self, machine: Machine) -> float:
        """Seconds until it is over; none after another boot."""
        if self.boot != _boot(machine):
            return 0.0
        return max(0.0, self.until_s - machine.monotonic_s())


def begin(machine: Machine, folder: HostFolder, limit_s: float) -> Trial:
    """Put the file aside that is applied; of a trial within a trial, the first one's.

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
    found = Trial(machine.monotonic_s() + limit_s, _boot(machine), has_before)
    machine.write(folder.trial_path, json.dumps(asdict(found)) + "\n", mode=0o600)
    return found


def trial(machine: Machine, folder: HostFolder) -> Trial | None:
    """The one that is on, due or not. Raises OSError."""
    text = machine.read(folder.trial_path)
    if text is None:
        return None
    try:
        values = json.loads(text)
        return Trial(float(values["until_s"]), str(values["boot"]), bool(values["has_before"]))
    except (ValueError, LookupError, TypeError):
        return Trial(0.0, "", machine.exists(folder.before_path))


def end(machine: Machine, folder: HostFolder) -> None:
    """Whatever is applied now stays. Raises OSError."""
    for path in (folder.trial_path, folder.before_path):
        if machine.exists(path):
            machine.remove(path)


def _boot(machine: Machine) -> str:
    try:
        return (machine.read(BOOT_ID) or "").strip()
    except OSError:
        return ""
