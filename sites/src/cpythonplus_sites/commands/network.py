"""The common part of the actions that only read the site file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpythonplus_sites.terminal import UsageError

if TYPE_CHECKING:
    from cpythonplus_sites.model import Network, Site


def site_called(network: Network, name: str) -> Site:
    """The site of that name. Raises UsageError if there is none."""
    from cpythonplus_sites.terminal import suggestion

    try:
        return network.site(name)
    except KeyError:
        hint = suggestion(name, [site.name for site in network.sites])
        raise UsageError(f"the file has no site {name!r}{hint}") from None
