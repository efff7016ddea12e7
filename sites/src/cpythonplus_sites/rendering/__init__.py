"""Texts made from a network's model: files for its gateways, a diagram, an inventory. No I/O."""

from cpythonplus_sites.rendering.files import (
    ROUTE_PROTOCOL,
    Host,
    RenderedFile,
    RenderingError,
)
from cpythonplus_sites.rendering.gateway import render, units
from cpythonplus_sites.rendering.names import changing_units, tunnel_user
from cpythonplus_sites.rendering.ssh import withdrawn

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
