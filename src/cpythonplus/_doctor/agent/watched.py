"""The looks of `doctor watch` at a process: one look asks for its figures, and draws nothing.

The answers are read like those in a report: the process may be of another version, or malicious.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from cpythonplus._base.proc import resident_bytes
from cpythonplus._base.reading import entries, inside, known, offered, size, words
from cpythonplus._doctor.agent.client import AskError, own_name
from cpythonplus._doctor.agent.finding import Unreachable, children_of
from cpythonplus._doctor.questions import asked

if TYPE_CHECKING:
    from cpythonplus._doctor.agent.client import Client

Sample = dict[str, object]
_OF_CENSUS = ("objects", "size_bytes", "pause_ns")
_OWNERS = 10
_LOOKS_PER_COPY = 10
_SHORT_S = 0.2
"""A part that takes longer, in the process or a copy of it, gets at most a tenth of the time."""
_LOOKS_PER_PAUSE = 50
"""A part that stopped the process for P seconds is asked for again after this many P, so that it
loses at most 2 % of its time."""


class Watched:
    """A process that is looked at repeatedly."""

    def __init__(self, client: Client) -> None:
        """Ask the process through `client`, which is closed between two looks for other doctors."""
        self._client = client
        self._began = time.monotonic()
        self._first: dict[str, tuple[int, int]] | None = None
        self._last: dict[str, dict[str, object]] = {}
        self._due: dict[str, float] = {}
        self._doctor = own_name()
        self._marked = False
        self.samples: list[Sample] = []

    def look(self) -> Sample:
        """Ask the process once more; Unreachable if it is gone."""
        pid = self._client.process.pid
        try:
            hello = self._client.ask("hello")
            names = dict.fromkeys([*asked("watch"), *offered(hello, "watch")])
            seen = {name: self._part(name) for name in names}
            grown = self._growth_by_owner()
        finally:
            self._client.close()
        census, resident, gil = seen["census"], seen["resident"], seen["gil"]
        sample: Sample = {
            "t_s": round(time.monotonic() - self._began, 3),
            "rss_bytes": size(hello, "rss_bytes"),
            "parts": entries(resident, "parts"),
            **{name: size(census, name) if known(census, name) else None for name in _OF_CENSUS},
            "growth": self._growth(census),
            **({} if grown is None else {"owners": entries(grown, "owners")[:_OWNERS]}),
            "gil": _waits(gil),
            "workers": [each.as_json() for each in children_of(pid)],
        }
        if not sample["rss_bytes"]:
            sample["rss_bytes"] = resident_bytes(pid)
        self.samples.append(sample)
        return sample

    def examination(self) -> dict[str, object]:
        """Return the findings as an examination; Unreachable if the process is gone."""
        return {**self._last, "samples": self.samples}

    def _part(self, name: str) -> dict[str, object]:
        """Ask for a part; return the last answer if asking again so soon would cost too much."""
        began = time.monotonic()
        if began < self._due.get(name, 0.0):
            return self._last[name]
        try:
            found = self._client.ask(name)
        except AskError as error:
            found = {"error": str(error)}
        self._last[name] = found
        now = time.monotonic()
        pause_s = size(found, "pause_ns") / 1e9 if known(found, "pause_ns") else 0.0
        took_s = now - began
        copied_s = took_s if took_s > _SHORT_S else 0.0
        self._due[name] = now + max(_LOOKS_PER_PAUSE * pause_s, _LOOKS_PER_COPY * copied_s)
        return found

    def _growth_by_owner(self) -> dict[str, object] | None:
        """Return the growth since the first look; None if this look does not ask for it.

        The second look makes the mark, so that the first is shown at once. Copies of the process do
        the work. On one processor they take turns with it, so they get at most a tenth of the time.
        """
        began = time.monotonic()
        if not self.samples or began < self._due.get("growth", 0.0):
            return None
        found: dict[str, object] | None = None
        try:
            if self._marked:
                found = self._last["growth"] = self._client.ask("growth_so_far", self._doctor)
            else:
                self._client.ask("mark", self._doctor)
                self._marked = True
        except AskError as error:
            self._last["growth"] = {"error": str(error)}
        now = time.monotonic()
        self._due["growth"] = now + _LOOKS_PER_COPY * (now - began)
        return found

    def forget(self) -> None:
        """Make the process forget the first look; nothing if it is gone."""
        if self._marked:
            with suppress(AskError, Unreachable):
                self._client.ask("forget_mark", self._doctor)
            self._client.close()
            self._marked = False

    def keep_target(self) -> None:
        """Note the facts about this process, for the report."""
        self._last["target"] = self._client.ask("hello")

    def _growth(self, census: dict[str, object]) -> list[dict[str, object]]:
        """Return the types by their growth since the first look, largest first."""
        rows = _by_name(census)
        if not rows:
            return []
        if self._first is None:
            self._first = rows
        found = []
        for name in {*rows, *self._first}:
            now, then = rows.get(name, (0, 0)), self._first.get(name, (0, 0))
            if now != then:
                found.append((now[1] - then[1], now[0] - then[0], name))
        found.sort(key=lambda row: (-row[0], row[2]))
        return [{"name": name, "objects": o, "size_bytes": b} for b, o, name in found if b > 0]


def _by_name(census: dict[str, object]) -> dict[str, tuple[int, int]]:
    return {
        words(row, "name"): (size(row, "objects"), size(row, "size_bytes"))
        for row in entries(census, "by_type")
    }


def _waits(gil: dict[str, object]) -> dict[str, object]:
    """Return the time that threads have waited for the GIL; empty if it is not scheduled."""
    if not gil.get("active"):
        return {}
    total = {"wait_ns": 0, "waits": 0, "switches": size(gil, "switches")}
    for name in ("interactive", "batch"):
        waits = inside(inside(gil, name), "waits")
        total["wait_ns"] += size(waits, "total_ns")
        total["waits"] += size(waits, "count")
    return dict(total)
