"""Draws each cause of cyclic garbage as a small graph: the references, and the way back."""

from typing import Final, NamedTuple

from cpythonplus._base.reading import Part, entries, inside, size, words
from cpythonplus._base.text.sizes import format_size
from cpythonplus._doctor.report.html import element, escaped, figure
from cpythonplus._doctor.report.sections import causes, place

_WIDTH: Final = 330
_BOX_WIDTH: Final = 250
_BOX: Final = 34
_STEP: Final = 70
_LEFT: Final = 4
_LETTERS: Final = 33
_LABEL_LETTERS: Final = 30
_MOST_NODES: Final = 6


class Graph(NamedTuple):
    """A cycle.

    nodes: its objects; edges: the name of the reference from each node to the next, the last one
    back to the first. closing: the edge that has to go.
    """

    nodes: list[str]
    edges: list[str]
    closing: int


def graph_of(cause: Part) -> Graph:
    """Return the cycle that a cause closes; a single node if its edges are not known."""
    rows = entries(cause, "edges") or [{"source": words(cause, "what")}]
    closing = next((n for n, row in enumerate(rows) if row.get("closing") is True), len(rows) - 1)
    nodes, edges = ([words(row, name) for row in rows] for name in ("source", "name"))
    return _folded(Graph(nodes, edges, closing))


def _folded(graph: Graph) -> Graph:
    """Leave out the middle of a long cycle."""
    count = len(graph.nodes)
    if count <= _MOST_NODES:
        return graph
    cut = count - _MOST_NODES + 1
    nodes = [*graph.nodes[:2], f"{cut} more", *graph.nodes[2 + cut :]]
    edges = [*graph.edges[:2], "", *graph.edges[2 + cut :]]
    closing = graph.closing if graph.closing < 2 else max(graph.closing - cut + 1, 2)  # noqa: PLR2004
    return Graph(nodes, edges, min(closing, len(edges) - 1))


def cycle_cards(cycles: Part, top: int) -> str:
    """Return a card with a graph for each of the first causes; "": there is none."""
    cards = "".join(_card(row) for row in causes(cycles)[:top])
    return element("div", cards, class_="cards") if cards else ""


def _card(row: Part) -> str:
    cause = inside(row, "cause")
    whole = size(row, "size_bytes") + size(row, "kept_bytes")
    count = size(row, "count")
    times = "once" if count == 1 else f"{count:,} times"
    told = (
        f"{place(inside(cause, 'place'))}: {words(cause, 'variable')} keeps {words(cause, 'what')}"
    )
    lines = (
        f'<p class="where"><code>{escaped(place(inside(cause, "place")))}</code></p>'
        f"<p>{times}, {escaped(format_size(whole))}</p>"
        f'<p class="do">{escaped(words(cause, "advice"))}</p>'
    )
    return element("article", lines + _drawn(graph_of(cause), told), class_="card")


def _drawn(graph: Graph, told: str) -> str:
    count = len(graph.nodes)
    height = _STEP * (count - 1) + _BOX + 8
    inner = ""
    for number, name in enumerate(graph.edges):
        closes = " closing" if number == graph.closing else ""
        if number < count - 1:
            inner += _down(4 + _STEP * number + _BOX, name, closes)
        else:
            inner += _back(4 + _STEP * number + _BOX / 2, 4 + _BOX / 2, name, closes)
    for number, name in enumerate(graph.nodes):
        inner += _box(4 + _STEP * number, name)
    described = " -> ".join(
        f"{node} {edge}".strip() for node, edge in zip(graph.nodes, graph.edges, strict=True)
    )
    svg = figure(inner, class_="graph", title=told, description=f"{described} -> back to the first")
    return svg.replace("<svg ", f'<svg viewBox="0 0 {_WIDTH} {height:g}" width="{_WIDTH}" ', 1)


def _box(y: float, name: str) -> str:
    rect = element("rect", x=_LEFT, y=y, width=_BOX_WIDTH, height=_BOX, rx=6, class_="node")
    text = element("text", escaped(_cut(name, _LETTERS)), x=_LEFT + 10, y=y + 22, class_="name")
    return element("g", element("title", escaped(name)) + rect + text)


def _down(y: float, name: str, closes: str) -> str:
    x = _LEFT + 26
    end = y + _STEP - _BOX
    label = element(
        "text", escaped(_cut(name, _LABEL_LETTERS)), x=x + 12, y=y + 23, class_=f"edge{closes}"
    )
    line = element("path", d=f"M{x} {y:g}V{end - 7:g}", class_=f"line{closes}")
    return line + _tip(x, end, closes, down=True) + label


def _back(low: float, high: float, name: str, closes: str) -> str:
    """Return the way from the last node to the first, around their right ends."""
    x, out = _LEFT + _BOX_WIDTH, _WIDTH - 34
    if low == high:
        high -= 8
        low += 8
    path = f"M{x} {low:g}H{out - 12}Q{out} {low:g} {out} {low - 12:g}"
    path += f"V{high + 12:g}Q{out} {high:g} {out - 12} {high:g}H{x + 7}"
    middle = (low + high) / 2
    label = element(
        "text",
        escaped(_cut(name, max(int((low - high) / 7), 13))),
        class_=f"edge{closes}",
        text_anchor="middle",
        transform=f"translate({out + 16} {middle:g}) rotate(-90)",
    )
    return (
        element("path", d=path, class_=f"line{closes}") + _tip(x, high, closes, down=False) + label
    )


def _tip(x: float, y: float, closes: str, *, down: bool) -> str:
    points = (
        f"{x},{y} {x - 5},{y - 9} {x + 5},{y - 9}"
        if down
        else f"{x},{y} {x + 9},{y - 5} {x + 9},{y + 5}"
    )
    return element("polygon", points=points, class_=f"tip{closes}")


def _cut(name: str, letters: int) -> str:
    if len(name) <= letters:
        return name
    head = letters // 3
    return f"{name[:head]}…{name[head + 1 - letters :]}"
