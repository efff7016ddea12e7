"""Single keys set in a site file: what changes, what stays, what is refused."""

import multiprocessing
from base64 import b64encode
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpythonplus_sites import site_file, toml
from cpythonplus_sites.editing import NotEditableError, edited
from cpythonplus_sites.lines import scan
from cpythonplus_sites.problems import SiteFileError
from cpythonplus_sites.site_file import load, write_keys
from sites.tests.site_texts import BERLIN_KEY, GOOD, PARIS_KEY, with_changed

pytestmark = pytest.mark.any_version

PARIS = ("sites", "paris", "public_key")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "sites.toml"
    path.write_text(GOOD)
    return path


def test_a_new_key_comes_behind_the_last_one(path: Path) -> None:
    write_keys(path, {"sites.paris.public_key": PARIS_KEY})
    last = 'tunnel_address = "10.254.0.2"\n'
    assert path.read_text() == with_changed(last, f'{last}public_key = "{PARIS_KEY}"\n')
    assert load(path).site("paris").public_key == PARIS_KEY


def test_a_key_is_replaced_and_taken_out(path: Path) -> None:
    before = path.stat().st_ino
    write_keys(path, {"sites.berlin.public_key": BERLIN_KEY})
    assert path.stat().st_ino == before  # nothing to write
    write_keys(path, {"sites.berlin.public_key": PARIS_KEY, "network.mtu": 1400})
    text = with_changed(BERLIN_KEY, PARIS_KEY)
    tunnel = 'tunnel = "10.254.0.0/24"\n'
    assert path.read_text() == with_changed(tunnel, f"{tunnel}mtu = 1400\n", text)
    write_keys(path, {"network.mtu": None, "network.hub": None})
    assert path.read_text() == text
    write_keys(path, {"network.preshared": False})
    assert not load(path).preshared


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[sites.paris]", "[sites.paris]\nk = 1"),
        ("[sites.paris]\n\n[x]\n", "[sites.paris]\nk = 1\n\n[x]\n"),
        (
            "[sites.paris]  # c\n  a = 0  # d\n# e\n",
            "[sites.paris]  # c\n  a = 0  # d\n  k = 1\n# e\n",
        ),
        ("[sites.paris]\r\na = 0\r\n", "[sites.paris]\r\na = 0\r\nk = 1\r\n"),
        ("\ufeffsites.paris.a = 0\n", "\ufeffsites.paris.a = 0\nsites.paris.k = 1\n"),
        (
            "[sites.paris]\na = 0\n\n# of rome\n[sites.rome]\n",
            "[sites.paris]\na = 0\nk = 1\n\n# of rome\n[sites.rome]\n",
        ),
        (
            "[[links]]\n[sites.paris]\na = 0\n[[links]]\n",
            "[[links]]\n[sites.paris]\na = 0\nk = 1\n[[links]]\n",
        ),
        ("[sites]\n'paris'.a = '''\n'''\n", "[sites]\n'paris'.a = '''\n'''\nparis.k = 1\n"),
        ("[sites.paris]\na = 0\n[sites]\nb = 0\n", "[sites.paris]\na = 0\nk = 1\n[sites]\nb = 0\n"),
        ("sites = {paris = {k = 0 , a = 0}}\n", "sites = {paris = {k = 1 , a = 0}}\n"),
    ],
)
def test_where_a_key_goes(before: str, after: str) -> None:
    keys = ("sites", "paris", "k")
    assert edited(before, {keys: 1}) == after
    if "{" not in before:
        assert edited(edited(after, {keys: 2}), {keys: None}).rstrip("\n") == before.rstrip("\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[sites.rome]\n", "sites.paris.k: there is no [sites.paris]"),
        ("sites = 1\n", "sites.paris.k: there is no [sites.paris]"),
        ("[sites]\nparis = {a = 0}\n", "sites.paris.k: is an inline table; write [sites.paris] on"),
        ("[sites]\nparis = {}\n", "sites.paris.k: [sites.paris] has no lines of its own"),
        (
            "[sites.paris]\na = 1\n[sites.paris.k]\n",
            "sites.paris.k: cannot be set in this layout",
        ),
    ],
)
def test_where_a_key_cannot_go(text: str, message: str) -> None:
    with pytest.raises(NotEditableError) as caught:
        edited(text, {("sites", "paris", "k"): 1})
    assert str(caught.value).startswith(message)


def test_a_change_that_adds_a_problem_is_refused(path: Path) -> None:
    cases: list[tuple[dict[str, str | None], str]] = [
        ({"sites.paris.public_key": "abc"}, "20: sites.paris.public_key: is not a WireGuard key"),
        ({"sites.paris.public_key": BERLIN_KEY}, "the same key is used by berlin"),
        ({"sites.berlin.endpoint": None}, "neither this site nor berlin has an endpoint"),
        (
            {"sites.oslo.public_key": PARIS_KEY},
            "6: sites.oslo.public_key: there is no [sites.oslo]",
        ),
    ]
    for changes, message in cases:
        with pytest.raises(SiteFileError) as caught:
            write_keys(path, dict(changes))
        assert message in str(caught.value)
        assert path.read_text() == GOOD


def test_problems_that_are_there_already_stay(path: Path) -> None:
    text = with_changed('"192.168.20.1"', '""')
    path.write_text(text)
    write_keys(path, {"sites.paris.public_key": PARIS_KEY})
    assert path.read_text().count(PARIS_KEY) == 1


def test_mode_and_link_stay_and_nothing_else_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o755)
    path, link = folder / "sites.toml", tmp_path / "sites.toml"
    path.write_text(GOOD)
    path.chmod(0o640)
    link.symlink_to(path)
    write_keys(link, {"sites.paris.public_key": PARIS_KEY})
    assert link.is_symlink()
    assert PARIS_KEY in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in folder.iterdir()] == ["sites.toml"]


def test_what_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(SiteFileError):
            write_keys(path, {"network.mtu": 1400})


def add_keys(path: Path, sites: list[str], barrier: Barrier) -> None:
    barrier.wait()
    for name in sites:
        key = b64encode(name.encode().ljust(32, b"k")).decode()
        write_keys(path, {f"sites.{name}.public_key": key})


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    names = [f"s{number}" for number in range(8)]
    stanzas = [
        f'[sites.{name}]\nlan = ["10.{n}.0.0/16"]\ngateway = "10.{n}.0.1"\n'
        f'tunnel_address = "172.30.0.{n + 1}"\nendpoint = "{name}.example.org:1"\n'
        for n, name in enumerate(names)
    ]
    path = tmp_path / "sites.toml"
    path.write_text('[network]\nname = "n"\ntunnel = "172.30.0.0/24"\n' + "".join(stanzas))
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(2)
    halves = names[::2], names[1::2]
    writers = [context.Process(target=add_keys, args=(path, half, barrier)) for half in halves]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert all(site.public_key for site in load(path).sites)


FILE = Path("sites.toml")
TOKENS = [*"[]{}=\"'#.,\n0", "[[", "]]", '"""', " ", "\r\n", "true", "[sites.x]\n", "[[links]]\n"]
TOKENS += ["lan = []\n", "[network]\n", "1979-05-27", "0x", "\\", "\ufeff", "\0", "/0", "é"]


VALUES = ["1", "-1", "true", "1.5", '""', "[]", "{}", '["", 1]', '"hub"', '"ssh"', "0000-01-01"]
VALUES += ['"10.0.0.0/8"', '"::/0"', '"10.254.0.1"', '"::1"', '"a:1"', '"berlin"', '["berlin"]']
STATEMENTS = scan(GOOD).statements


@st.composite
def revalued(draw: st.DrawFn) -> str:
    """The good file with other values, that are in the right place or in a wrong one."""
    chosen = draw(st.sets(st.sampled_from(range(len(STATEMENTS))), min_size=1, max_size=6))
    text = GOOD
    for one in (STATEMENTS[number] for number in sorted(chosen, reverse=True)):
        text = text[: one.value_start] + draw(st.sampled_from(VALUES)) + text[one.end :]
    return text


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """The good file with parts of it taken out, doubled, or other tokens put in."""
    text = GOOD
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 40)))
        text = text[:start] + draw(st.sampled_from([*TOKENS, text[start:end] * 2])) + text[end:]
    return text


LINES = st.lists(st.sampled_from([*GOOD.splitlines(), "", "a = 1", "[sites.x]"]), max_size=30)


@settings(max_examples=60, deadline=None)
@given(mutated() | revalued() | LINES.map("\n".join) | st.text(max_size=30))
def test_any_text_loads_or_is_told_why(text: str) -> None:
    try:
        stanzas, layout, wrong = site_file.examine(FILE, text)
    except SiteFileError:
        return
    problems = site_file._placed(wrong, layout)
    last = text.count("\n") + 1
    assert all(1 <= one.line <= last and one.key and one.message for one in problems)
    assert all(line.isprintable() for line in SiteFileError(FILE, problems).lines())
    if not wrong:
        assert site_file.SiteFile(FILE, stanzas, layout).network.sites


@settings(max_examples=30, deadline=None)
@given(mutated() | revalued(), st.sampled_from([PARIS_KEY, BERLIN_KEY, None]))
def test_an_edited_file_means_the_old_one_with_the_change(text: str, value: str | None) -> None:
    try:
        expected: Any = toml.loads(text.removeprefix("\ufeff"))
        new = edited(text, {PARIS: value})
    except (ValueError, NotEditableError):
        return
    if value is not None:
        expected["sites"]["paris"]["public_key"] = value
    else:
        expected["sites"]["paris"].pop("public_key", None)
    assert toml.loads(new.removeprefix("\ufeff")) == expected
    added = [line for line in new.splitlines() if line not in text.splitlines()]
    assert len(added) <= 1
    assert edited(new, {PARIS: value}) == new
