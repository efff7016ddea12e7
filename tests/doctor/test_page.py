"""The doctor's page: whatever the names are, it stays one page that loads and runs nothing else."""

import gc
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpythonplus._doctor.report.cycle_graphs import graph_of
from cpythonplus._doctor.report.page import page, write_page
from cpythonplus._doctor.report.squarify import squarify
from cpythonplus._doctor.report.time_line import time_lines
from cpythonplus._doctor.report.treemap import group, shortened
from tests.doctor import examinations

pytestmark = pytest.mark.any_version

LIMIT_BYTES = 300_000
ALLOWED_LINKS = re.compile(r"#\w+$|data:,$")
NO_END = {"meta", "link", "input"}


class Reader(HTMLParser):
    """Tags, attributes and texts of a page; that every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.policy = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        found = dict(attrs)
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found["content"] or ""
        if tag not in NO_END:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_hostile_names_stay_text() -> None:
    plain, hostile = page(examinations.everything()), page(examinations.hostile())
    hostile.encode("utf-8")
    found = Reader(hostile)
    assert set(found.tags) == set(Reader(plain).tags)
    assert [found.tags.count(tag) for tag in ("script", "style", "html", "body")] == [1, 1, 1, 1]
    assert [each for each in found.attributes if each[1].startswith("on")] == []
    assert [each for each in found.attributes if each[1] == "style"] == []
    links = [value for _, name, value in found.attributes if name in ("href", "src")]
    assert [link for link in links if not ALLOWED_LINKS.match(link)] == []
    told = "".join(found.texts)
    assert "</script><script>globalThis.hit = 1</script>" in told
    assert "\\x1b[2J\\x1b]0;title\\x07\\r\\n\\t\\x00\\x7f\\x9b" in told
    assert [c for c in hostile if not c.isprintable() and c != "\n"] == []


def test_only_its_own_script_and_style_are_allowed() -> None:
    text = page(examinations.hostile())
    policy = dict(each.strip().split(" ", 1) for each in Reader(text).policy.split(";"))
    for kind in ("script", "style"):
        (own,) = re.findall(f"<{kind}>(.*?)</{kind}>", text, re.DOTALL)
        digest = b64encode(sha256(own.encode()).digest()).decode()
        assert policy[f"{kind}-src"] == f"'sha256-{digest}'"
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert policy["img-src"] == "data:"
    assert text.index("Content-Security-Policy") < text.index("<style>")


def test_it_is_small() -> None:
    assert len(page({}).encode()) < LIMIT_BYTES / 10
    assert len(page(examinations.everything()).encode()) < LIMIT_BYTES


def test_large_examinations_make_no_large_page() -> None:
    whole = examinations.everything()
    whole["census"]["by_owner"] *= 50
    whole["resident"]["arenas"]["fullness"] = [2**40] * 10
    whole["samples"] *= 50
    whole["cycles"]["cycles"] *= 100
    assert len(page(whole).encode()) < 2 * LIMIT_BYTES


def test_a_file_is_written(tmp_path: Path) -> None:
    file = tmp_path / "doctor.html"
    file.write_text("old" * 100_000)
    write_page(examinations.everything(), file)
    assert file.read_text("utf-8") == page(examinations.everything())
    with pytest.raises(OSError, match="missing"):
        write_page({}, str(tmp_path / "missing" / "doctor.html"))


@pytest.mark.parametrize("part", list(examinations.everything()))
def test_a_part_alone_is_a_page(part: str) -> None:
    text = page({part: examinations.everything()[part]})
    Reader(text)
    assert (f'<section id="{part}">' in text) == (part != "target")


def test_a_part_that_was_refused_says_why() -> None:
    told = "".join(Reader(page({"census": {"error": "<busy>"}})).texts)
    assert "not examined: <busy>" in told


def test_pictures_have_names_and_descriptions() -> None:
    text = page(examinations.everything())
    pictures = re.findall(r'<svg [^>]*role="img"[^>]*><title>.+?</title><desc>.+?</desc>', text)
    assert len(pictures) == text.count("<svg") - text.count('aria-hidden="true"') - cells(text)
    assert len(pictures) >= 15


def cells(text: str) -> int:
    """How many drawings are parts of others."""
    return text.count('class="cell"') + text.count('preserveAspectRatio="none"')


def test_every_area_is_in_a_table_too() -> None:
    whole = examinations.everything()
    (table,) = re.findall(r"<caption>By owner</caption>.*?</table>", page(whole), re.DOTALL)
    assert [row["name"] for row in whole["census"]["by_owner"] if row["name"] not in table] == []


def test_nothing_is_kept() -> None:
    examination = examinations.everything()
    page(examination)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(2):
        page(examination)
    gc.collect()
    assert len(gc.get_objects()) <= before + 10


# ---- the treemap --------------------------------------------------------------------------------

SIZES = st.lists(st.integers(1, 10**12), min_size=1, max_size=60)


@settings(max_examples=25, deadline=None)
@given(SIZES, st.integers(50, 2000), st.integers(50, 2000))
def test_boxes_have_the_areas_and_do_not_overlap(sizes: list[int], width: int, height: int) -> None:
    sizes.sort(reverse=True)
    boxes = squarify(sizes, width, height)
    scale = width * height / sum(sizes)
    for each, box in zip(sizes, boxes, strict=True):
        assert box.width * box.height == pytest.approx(each * scale, rel=1e-6, abs=1e-6)
        assert -1e-6 <= box.x <= box.x + box.width <= width + 1e-6
        assert -1e-6 <= box.y <= box.y + box.height <= height + 1e-6
    for n, a in enumerate(boxes):
        for b in boxes[n + 1 :]:
            across = min(a.x + a.width, b.x + b.width) - max(a.x, b.x)
            down = min(a.y + a.height, b.y + b.height) - max(a.y, b.y)
            assert min(across, down) < 1e-5


def test_the_example_of_the_paper() -> None:
    """Figure 4 of it: 6, 6, 4, 3, 2, 2, 1 in a rectangle of 6 by 4."""
    boxes = squarify([6, 6, 4, 3, 2, 2, 1], 6, 4)
    assert [tuple(round(edge, 2) for edge in box) for box in boxes] == [
        (0, 0, 3, 2),
        (0, 2, 3, 2),
        (3, 0, 1.71, 2.33),
        (4.71, 0, 1.29, 2.33),
        (3, 2.33, 1.2, 1.67),
        (4.2, 2.33, 1.2, 1.67),
        (5.4, 2.33, 0.6, 1.67),
    ]
    assert squarify([], 6, 4) == []


def test_names_are_shortened_from_the_front() -> None:
    name = "dict of shop.models.Order"
    lengths = (25, 24, 12, 5, 4)
    assert [shortened(name, letters) for letters in lengths] == [
        name,
        "dict of Order",
        "Order",
        "Order",
        "",
    ]
    assert shortened("Connection", 6) == "Conne…"


def test_packages_share_a_colour() -> None:
    names = (
        "dict of shop.models.Order",
        "dict of module shop.views",
        "shop.A",
        "dict of function",
        "Odd",
    )
    assert [group(name) for name in names] == ["shop", "shop", "shop", "builtins", "Odd"]


# ---- the time line ------------------------------------------------------------------------------


def test_parts_are_drawn_where_they_were_looked_at() -> None:
    samples = [
        {"t_s": t, "rss_bytes": 100, "parts": [{"name": "code", "resident_bytes": code}]}
        for t, code in ((0, 50), (1, 50), (2, 100), (4, 100))
    ]
    (area,) = re.findall(r'<polygon points="([^"]*)"', time_lines(samples))
    assert area == "0.0,500.0 500.0,0.0 500.0,1000.0 0.0,1000.0"
    (line,) = re.findall(r'<polyline points="([^"]*)"', time_lines(samples))
    assert line == "0.0,0.0 250.0,0.0 500.0,0.0 1000.0,0.0"
    assert time_lines(samples[:1]) == ""


# ---- the graphs of cycles -----------------------------------------------------------------------


def test_a_cause_is_drawn_as_its_cycle() -> None:
    edges = [{"source": f"{n}", "name": f".{n}", "closing": n == 6} for n in range(9)]
    graph = graph_of({"edges": edges[4:]})
    assert graph == (["4", "5", "6", "7", "8"], [".4", ".5", ".6", ".7", ".8"], 2)
    graph = graph_of({"edges": edges})
    assert graph.nodes == ["0", "1", "4 more", "6", "7", "8"]
    assert graph.edges == [".0", ".1", "", ".6", ".7", ".8"]
    assert graph.edges[graph.closing] == ".6"
    assert graph_of({"what": "A, B", "edges": []}) == (["A, B"], [""], 0)
