"""The record of everything that `apply` has set up on a gateway, kept in the host folder. No I/O.

Every name that `apply` gives contains the network's name, so that a gateway may belong to two
networks. After a rename nothing in the file leads to things with the old name, and they would stay:
the old keys would still let their owners in after the next boot. So each thing is recorded before
it is made, and forgotten when it is gone. Rejected: a search by patterns, which would also remove
the things of the gateway's other network, which has its own host folder.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Record:
    """The names of the things that were set up.

    files: their paths.  units: systemd units, in the order in which they are started.  tables:
    nftables tables, by family and name.  users: system users for links over ssh.  metrics: those
    of the `unreachable` routes.  addresses: the tunnel addresses of this gateway.
    """

    files: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()

    def joined(self, other: Record) -> Record:
        """The union of the two records."""
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
        """The record as the text of a file."""
        values = {x.name: list(getattr(self, x.name)) for x in fields(self)}
        return json.dumps(values, indent=1) + "\n"


NOTHING = Record()
USER_PREFIX = "sites-"
"""The prefix of the users that rendering.names gives."""


def parse(text: str) -> Record:
    """Read a record; invalid entries are skipped, so that nothing is removed because of them."""
    try:
        values = json.loads(text)
    except ValueError:
        return NOTHING
    if not isinstance(values, dict):
        return NOTHING
    found = Record(*(_words(values.get(x.name)) for x in fields(Record)))
    # All processes of an unwanted user are killed, so only names with our prefix are accepted.
    return replace(found, users=tuple(x for x in found.users if x.startswith(USER_PREFIX)))


def _words(found: object) -> tuple[str, ...]:
    return tuple(x for x in found if isinstance(x, str)) if isinstance(found, list) else ()


def once(found: Iterable[str]) -> tuple[str, ...]:
    """The distinct items, in the order of their first occurrence."""
    return tuple(dict.fromkeys(found))
