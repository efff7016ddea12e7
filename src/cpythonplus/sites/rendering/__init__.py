"""What is made from a network's model: files for its gateways, a diagram, an inventory. No I/O."""

from cpythonplus.sites.rendering.files import (
    ROUTE_PROTOCOL,
    Host,
    RenderedFile,
    RenderingError,
)
from cpythonplus.sites.rendering.gateway import render, units
from cpythonplus.sites.rendering.names import changing_units, tunnel_user
from cpythonplus.sites.rendering.ssh import withdrawn

__all__ = [
    "ROUTE_PROTOCOL",
    "Host",
    "RenderedFile",
    "RenderingError",
    "changing_units",
    "render",
    "tunnel_user",
    "units",
    "withdrawn",
]
