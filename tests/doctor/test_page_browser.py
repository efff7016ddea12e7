"""The doctor's page in a browser: it is drawn, works with keys and clicks, and asks for nothing."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cpythonplus._doctor.report.page import write_page
from tests.doctor import browser, examinations

pytestmark = pytest.mark.slow  # starts a browser

NEEDED = "CPYTHONPLUS_NEED_CHROMIUM"
SCREENS = [(1280, 900, "light"), (1280, 900, "dark"), (400, 800, "light"), (400, 800, "dark")]

# How many areas are to be seen of a selector.
SEEN = """[...document.querySelectorAll('%s')].map(e => e.getBoundingClientRect())
.filter(box => box.width > 1 && box.height > 1).length"""
# What a page that got something into itself could do; the policy's violations are counted.
BREAK_OUT = """new Promise(done => {
  const found = [];
  document.addEventListener('securitypolicyviolation', e => {
    found.push(`${e.disposition} ${e.effectiveDirective}`);
    if (found.length === 4) done(found.sort());
  });
  const script = document.createElement('script');
  script.textContent = 'globalThis.hit = 1';
  document.body.append(script);
  const image = document.createElement('img');
  image.src = 'http://127.0.0.1:9/x.png';
  const frame = document.createElement('iframe');
  frame.src = 'http://127.0.0.1:9/';
  document.body.append(image, frame);
  fetch('http://127.0.0.1:9/').catch(() => 0);
})"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Page]:
    executable = browser.chromium()
    if executable is None:
        assert NEEDED not in os.environ, "CI has to run this, and there is no Chromium"
        pytest.skip("no Chromium")
    with browser.page(executable, tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture
def opened(page: browser.Page, tmp_path: Path) -> browser.Page:
    write_page(examinations.everything(), tmp_path / "doctor.html")
    show(page, tmp_path / "doctor.html")
    return page


def show(page: browser.Page, file: Path) -> None:
    page.complaints.clear()
    page.requests.clear()
    page.screen(1280, 900)
    page.open(file)


def assert_quiet(page: browser.Page) -> None:
    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in page.requests if url.startswith("file:")]) == 1


def test_everything_is_drawn(opened: browser.Page) -> None:
    assert opened.value(SEEN % ".treemap.wide .cell rect") == 61
    assert opened.value(SEEN % ".treemap.narrow .cell rect") == 0
    assert opened.value(SEEN % ".bar.wide .cell rect") == 5
    assert opened.value(SEEN % ".arenas i") == 40
    assert opened.value(SEEN % ".graph .node") == 3 + 3 + 2 + 2 + 2
    assert opened.value(SEEN % ".time polygon, .time polyline") == 4
    assert opened.value(SEEN % ".copy button") == 1
    assert_quiet(opened)


def test_it_fits_the_screen_and_is_not_blank(opened: browser.Page) -> None:
    for width, height, scheme in SCREENS:
        opened.screen(width, height, scheme)
        assert opened.value("document.documentElement.scrollWidth") <= width
        narrow = opened.value(SEEN % ".treemap.narrow .cell rect")
        assert narrow == (27 if width == 400 else 0)
        lines = opened.picture(width, 2000, 0.05)
        pixels = [line[n : n + 3] for line in lines for n in range(0, len(line), 3)]
        paper = max(set(pixels), key=pixels.count)
        assert len(set(pixels)) > 100
        assert (sum(paper) > 3 * 128) == (scheme == "light")
    assert_quiet(opened)


def test_letters_can_be_told_from_what_is_behind_them(opened: browser.Page) -> None:
    """WCAG's contrast of 4.5 for every text in a coloured area, in both schemes."""
    contrast = """(() => {
      const light = c => c.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
        .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
        .reduce((sum, v, n) => sum + v * [.2126, .7152, .0722][n], 0);
      return [...document.querySelectorAll('.cell text')].map(text => {
        const a = light(getComputedStyle(text).fill);
        const b = light(getComputedStyle(text.parentNode.querySelector('rect')).fill);
        return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
      }).reduce((low, v) => Math.min(low, v), 99);
    })()"""
    for scheme in ("light", "dark"):
        opened.screen(1280, 900, scheme)
        assert opened.value(contrast) >= 4.5


def test_the_treemap_switches_and_tables_sort(opened: browser.Page) -> None:
    opened.value("document.querySelector('#view0').focus()")
    for kind in ("rawKeyDown", "keyUp"):
        opened.call("Input.dispatchKeyEvent", type=kind, key="ArrowRight", windowsVirtualKeyCode=39)
    assert opened.value("document.querySelector('#view1').checked")
    assert opened.value(SEEN % ".p1 .wide .cell") == 2
    assert opened.value(SEEN % ".p0 .wide .cell") == 0
    column = """[...document.querySelectorAll('#resident table')[0].tBodies[0].rows]
        .map(row => Number(row.cells[0].dataset.v) >> 20)"""
    assert opened.value(column) == [620, 190, 60, 24, 6]
    heading = "document.querySelector('#resident th button')"
    opened.value(f"{heading}.click()")
    opened.value(f"{heading}.click()")
    assert opened.value(column) == [6, 24, 60, 190, 620]
    assert opened.value(f"{heading}.parentNode.ariaSort") == "ascending"
    assert_quiet(opened)


def test_it_can_be_read_without_scripts(page: browser.Page, tmp_path: Path) -> None:
    write_page(examinations.everything(), tmp_path / "doctor.html")
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        show(page, tmp_path / "doctor.html")
        assert page.value("document.querySelectorAll('button').length") == 0
        assert page.value(SEEN % ".treemap.wide .cell rect") == 61
        page.value("document.querySelector('.l2').click()")
        assert page.value(SEEN % ".p2 .wide .cell") == 1  # the other one is 512 bytes
        assert page.value(SEEN % ".p0 .wide .cell") == 0
        assert page.value(SEEN % ".graph .node") == 12
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)
    assert_quiet(page)


def test_hostile_names_do_nothing(page: browser.Page, tmp_path: Path) -> None:
    write_page(examinations.hostile(), tmp_path / "doctor.html")
    show(page, tmp_path / "doctor.html")
    assert page.value("[globalThis.hit, document.scripts.length, document.images.length]") == [
        None,
        1,
        0,
    ]
    assert page.value(SEEN % ".treemap.wide .cell rect") == 61
    assert_quiet(page)


def test_the_policy_holds_what_would_get_out(opened: browser.Page) -> None:
    ways = ["connect-src", "frame-src", "img-src", "script-src-elem"]
    assert opened.value(BREAK_OUT) == [f"enforce {way}" for way in ways]
    assert opened.value("globalThis.hit") is None
