"""The network as an SVG picture of its own: boxes around a free middle, links as curves through it.

No library, no script, no font of its own; colours follow the reader's light or dark setting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from cpythonplus_sites.model import Link, Network, Site

LINE = 17
PADDING = 12
CHARACTER = 7.3
"""Lengths in pixels: a text line, the padding of a box, a character of 12 px monospace."""

MOST_LANS = 3
FEW = 4
MOST_CHARACTERS = 44
LABELLED_LINKS = 15
"""The most links with labels; if there are more, only the legend and tool tips name them."""

STYLE = """\
:root { --back: #ffffff; --box: #f3f6fa; --edge: #55708f; --text: #17212c; --soft: #52606e;
  --wireguard: #2f6fb3; --ssh: #b3541e; --hub: #dfeaf6; }
@media (prefers-color-scheme: dark) {
  :root { --back: #14181d; --box: #1f262e; --edge: #8aa3bf; --text: #e8edf2; --soft: #a9b5c1;
    --wireguard: #6fb1f5; --ssh: #f0a070; --hub: #26384b; } }
.back { fill: var(--back); }
.box { fill: var(--box); stroke: var(--edge); stroke-width: 1.2; }
.hub .box { fill: var(--hub); stroke-width: 2.4; }
.nat .box { stroke-dasharray: 5 4; }
text { font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: var(--soft); }
.name { font-size: 14px; font-weight: 700; fill: var(--text); }
.link { fill: none; stroke: var(--wireguard); stroke-width: 1.8; }
.many .link { stroke-width: 1; stroke-opacity: 0.55; }
.ssh { stroke: var(--ssh); stroke-dasharray: 7 5; stroke-opacity: 1; }
.many .ssh { stroke-width: 1.6; stroke-opacity: 1; }
.label { text-anchor: middle; paint-order: stroke; stroke: var(--back); stroke-width: 5px; }
"""


@dataclass(frozen=True)
class Box:
    """A site's place: its middle and its size, in pixels."""

    x: float
    y: float
    width: float
    height: float


def svg(network: Network) -> str:
    """The picture, as a whole file."""
    boxes, width, height = layout(network)
    many = ' class="many"' if len(network.links) > LABELLED_LINKS else ""
    middle = (width / 2, height / 2)
    links = "".join(_curve(link, boxes, middle, labelled=not many) for link in network.links)
    sites = "".join(_site(network, site, boxes[site.name]) for site in network.sites)
    total = height + 2 * LINE
    title = f"Sites of {network.name}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {total:.0f}" '
        f'width="{width:.0f}" height="{total:.0f}" role="img" aria-label="{_text(title)}">\n'
        f"<title>{_text(title)}</title>\n<style>\n{STYLE}</style>\n"
        f'<rect class="back" width="100%" height="100%"/>\n<g{many}>\n{links}</g>\n{sites}'
        f"{_legend(network, height)}</svg>\n"
    )


def layout(network: Network) -> tuple[dict[str, Box], float, float]:
    """The box of each site, with the width and height of the whole picture.

    The boxes form a rectangle that is about as wide as a screen; the hub is in the middle. An
    ellipse was rejected: with 30 sites, the wide boxes at its top set its size, and the text was
    too small to read.
    """
    outer = [site for site in network.sites if site.name != network.hub]
    size = max(len(text) for site in network.sites for text in _lines(site))
    width = max(120.0, size * CHARACTER + 2 * PADDING)
    height = max(len(_lines(site)) for site in network.sites) * LINE + 2 * PADDING
    places, columns, rows = _around(len(outer), hub=network.hub is not None)
    step_x, step_y = width + 40, height + (90 if rows <= FEW else 26)
    boxes = {
        site.name: Box(30 + width / 2 + x * step_x, 30 + height / 2 + y * step_y, width, height)
        for site, (x, y) in zip(outer, places)
    }
    total = (60 + width + (columns - 1) * step_x, 60 + height + (rows - 1) * step_y)
    if network.hub is not None:
        boxes[network.hub] = Box(total[0] / 2, total[1] / 2, width, height)
    return boxes, *total


def _around(count: int, *, hub: bool) -> tuple[list[tuple[float, float]], int, int]:
    """Places (column, row) along a rectangle's border, clockwise, with its columns and rows."""
    least = 3 if hub else 2
    columns, rows = max(least, 3 if count > FEW else 2), least
    while 2 * columns + 2 * (rows - 2) < count:
        if rows < 2 * columns - 2:
            rows += 1
        else:
            columns += 1
    border = [(float(x), 0.0) for x in range(columns)]
    border += [(columns - 1.0, float(y)) for y in range(1, rows - 1)]
    border += [(float(x), rows - 1.0) for x in reversed(range(columns))]
    border += [(0.0, float(y)) for y in reversed(range(1, rows - 1))]
    step = len(border) / max(count, 1)
    return [border[int(number * step)] for number in range(count)], columns, rows


def _site(network: Network, site: Site, box: Box) -> str:
    kinds = ["hub"] if site.name == network.hub else []
    kinds += ["nat"] if site.endpoint is None else []
    left, top = box.x - box.width / 2, box.y - box.height / 2
    texts = []
    for number, line in enumerate(_lines(site)):
        name = ' class="name"' if number == 0 else ""
        y = top + PADDING + LINE * (number + 0.75)
        texts.append(f'<text{name} x="{left + PADDING:.1f}" y="{y:.1f}">{_text(line)}</text>')
    tip = "\n".join([site.name, *map(str, site.lans), f"tunnel {site.tunnel_address}"])
    return (
        f'<g class="{" ".join(kinds)}"><title>{_text(tip)}</title>'
        f'<rect class="box" x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="6"/>{"".join(texts)}</g>\n'
    )


def _lines(site: Site) -> list[str]:
    lans = [str(lan) for lan in site.lans]
    if len(lans) > MOST_LANS:
        lans = [*lans[: MOST_LANS - 1], f"and {len(lans) - MOST_LANS + 1} more"]
    where = str(site.endpoint) if site.endpoint else "behind NAT"
    return [_short(text) for text in (site.name, *lans, where)]


def _short(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"


def _curve(
    link: Link, boxes: dict[str, Box], middle: tuple[float, float], *, labelled: bool
) -> str:
    """From box to box, bent to the middle, so that it passes no box between the two."""
    one, other = boxes[link.ends[0]], boxes[link.ends[1]]
    half = ((one.x + other.x) / 2, (one.y + other.y) / 2)
    bend = (half[0] + (middle[0] - half[0]) * 0.7, half[1] + (middle[1] - half[1]) * 0.7)
    kind = "link ssh" if link.via == "ssh" else "link"
    means = "WireGuard" if link.via == "wireguard" else f"ssh, tun{link.tunnel_number}"
    if link.fallback is not None:
        means += f", else ssh, tun{link.tunnel_number}"
    tip = f"{link.ends[0]} - {link.ends[1]}: {means}, MTU {link.mtu}"
    path = (
        f'<path class="{kind}" d="M{one.x:.1f} {one.y:.1f} Q{bend[0]:.1f} {bend[1]:.1f} '
        f'{other.x:.1f} {other.y:.1f}"><title>{_text(tip)}</title></path>\n'
    )
    if not labelled or link.via == "wireguard":
        return path
    x, y = ((half[0] + bend[0]) / 2, (half[1] + bend[1]) / 2)
    return path + f'<text class="label" x="{x:.1f}" y="{y:.1f}">{_text(means)}</text>\n'


def _legend(network: Network, top: float) -> str:
    """The legend of the kinds of links that occur."""
    found = [("link", "WireGuard")] if any(x.via == "wireguard" for x in network.links) else []
    found += [("link ssh", "ssh")] if any(x.via == "ssh" for x in network.links) else []
    y, parts = top + LINE / 2, []
    for number, (kind, text) in enumerate(found):
        x = 30 + number * 150
        parts.append(
            f'<path class="{kind}" d="M{x} {y:.1f} h36"/>'
            f'<text x="{x + 44}" y="{y + 4:.1f}">{text}</text>\n'
        )
    return "".join(parts)


def _text(text: str) -> str:
    """Escaped; characters that XML forbids are left out."""
    kept = "".join(each for each in text if each in "\n\t" or each.isprintable())
    return escape(kept, {'"': "&quot;"})
