"""How two sites are linked: by cpythonplus-sites, whichever is installed, and by wg-quick."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sites.tests.testbed import situations
from sites.tests.testbed.by_hand import INTERFACE, ByHand
from sites.tests.testbed.network import FILE, PORT, Shared, must, typed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sites.tests.testbed.bed import Site


class Links(Protocol):
    """What is done to the links between the sites of a bed, as its users would do it."""

    interface: str

    def up(self) -> None:
        """Link the sites."""

    def up_by_name(self, named: situations.Named) -> None:
        """Link them, where one has no endpoint and the other one a name."""

    def repair(self, site: Site) -> None:
        """Type what brings a gateway's tunnel back."""

    def add(self, site: Site) -> None:
        """Link one more site with all."""

    def remove(self, site: Site, *, at: Site) -> None:
        """Take a site out, on the gateway of another one."""

    def asked(self, site: Site) -> tuple[bool, str]:
        """Ask a gateway how its links are: whether it says well, and its words."""


class Ours:
    """By cpythonplus-sites."""

    interface = "wg-acme"

    def __init__(self, sites: Sequence[Site]) -> None:
        self._shared = Shared(sites)

    def up(self) -> None:
        """See Links."""
        self._shared.apply()

    def up_by_name(self, named: situations.Named) -> None:
        """See Links."""
        named.apply().ran(2)

    def repair(self, site: Site) -> None:
        """See Links."""
        must(site, "apply", "--yes")

    def add(self, site: Site) -> None:
        """See Links."""
        self._shared.sites.append(site)
        self._shared.apply()

    def remove(self, site: Site, *, at: Site) -> None:
        """See Links."""
        self._shared.sites.remove(site)
        at.gateway.write(FILE, self._shared.text())
        must(at, "apply", "--yes")

    def asked(self, site: Site) -> tuple[bool, str]:
        """See Links."""
        done = typed(site, "status")
        return done.returncode == 0, done.stdout + done.stderr


class WgQuick:
    """By wg-quick, and wg where that interrupts nothing."""

    interface = INTERFACE

    def __init__(self, sites: Sequence[Site]) -> None:
        self._hand = ByHand(sites)

    def up(self) -> None:
        """See Links."""
        self._hand.up()

    def up_by_name(self, named: situations.Named) -> None:
        """See Links."""
        endpoints = {"berlin": None, "paris": f"{situations.HUB}:{PORT}"}
        ByHand([named.berlin, named.paris], endpoints=endpoints).up()

    def repair(self, site: Site) -> None:
        """See Links."""
        site.gateway.run("wg-quick", "up", INTERFACE)

    def add(self, site: Site) -> None:
        """See Links."""
        others = list(self._hand.sites)
        self._hand.sites.append(site)
        self._hand.up(site)
        for other in others:
            self._hand.reload(other, new=[site])

    def remove(self, site: Site, *, at: Site) -> None:
        """See Links."""
        self._hand.sites.remove(site)
        self._hand.write()
        self._hand.reload(at)

    def asked(self, site: Site) -> tuple[bool, str]:
        """See Links."""
        return True, site.gateway.run("wg", "show")
