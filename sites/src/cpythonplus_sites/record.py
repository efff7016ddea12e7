"""The record of everything that `apply` has set up on a gateway, kept in the host folder. No I/O.

Every name that it gives carries the network's, so that a gateway may belong to two. After a rename
nothing in the file leads to what has the old name, and that would go on: keys would stay, and
whoever they let in would get in again at the next boot. So what is about to be made is recorded
before, and forgotten when it is gone. Rejected: to search by patterns, which would take away what
belongs to the gateway's other network, with a host folder of its own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Record:
    """Names of what was set up.

    files: their paths.  units: of systemd, in the order in which they are started.  tables: of
    nftables, by family and name.  users: of the system, for links over ssh.  metrics: of routes
    that refuse.  addresses: of the tunnels' own end.
    """

    files: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()

    def joined(self, other: Record) -> Record:
        """All that is in one of the two."""
        return Record(
            *(once((*getattr(self, x.name), *getattr(other, x.name))) for x in fields(self))
        )

    def without(self, other: Record) -> Record:
        """Return the entries that the other record lacks."""
        return Record(
            *(
                tuple(each for each in getattr(self, x.name) if each not in getattr(other, x.name))
                for x in fields(self)
            )
        )

    def text(self) -> str:
        """As a file."""
        values = {x.name: list(getattr(self, x.name)) for x in fields(self)}
        return json.dumps(values, indent=1) + "\n"


NOTHING = Record()
USER_PREFIX = "sites-"
"""The prefix of the users that rendering.names gives."""


def parse(text: str) -> Record:
    """Read a record; what is odd in it is passed over, and so nothing is taken away for it."""
    try:
        values = json.loads(text)
    except ValueError:
        return NOTHING
    if not isinstance(values, dict):
        return NOTHING
    found = Record(*(_words(values.get(x.name)) for x in fields(Record)))
    # All processes of a user that is not wanted any more are ended.
    return replace(found, users=tuple(x for x in found.users if x.startswith(USER_PREFIX)))


def _words(found: object) -> tuple[str, ...]:
    return tuple(x for x in found if isinstance(x, str)) if isinstance(found, list) else ()


def once(found: Iterable[str]) -> tuple[str, ...]:
    """Each once, in the order of the first."""
    return tuple(dict.fromkeys(found))
