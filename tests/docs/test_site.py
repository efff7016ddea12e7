"""The site: where pages lie in it, where their links lead, what fails the build."""

from pathlib import Path

import pytest

from tests.docs import pages
from tools.docs_site import docstrings, moved, stage
from tools.docs_site.links import broken

FILES = {
    "pyproject.toml": "[project]\nname = 'x'\n",
    "LICENSE": "free\n",
    "README.md": "# Name\n\nOne sentence.\n\nStatus.\n\n## Install\n\n[changes](CHANGELOG.md)\n\n"
    "## Which problem do you have?\n\n[slow](docs/how-to/fast.md#why)\n",
    "CHANGELOG.md": "# Changes\n[licence](LICENSE), [sources](src)\n",
    "CONTRIBUTING.md": "# Contributing\n",
    "src/x.py": "",
    "docs/README.md": "# Documentation\n\n## Doing\n\n### It is slow\n\n- [Fast](how-to/fast.md)\n"
    "- [Small](how-to/small.md), [suites](benchmarks/README.md): [one](benchmarks/one.md)\n",
    "docs/how-to/fast.md": "# Fast\n[a](../README.md#it-is-slow) [b](../../CONTRIBUTING.md)\n",
    "docs/how-to/small.md": "# Small\n![p](p.png) [start](../../README.md#install)\n"
    "```text\n[x](y)\n```\n",
    "docs/how-to/p.png": "",
    "docs/benchmarks/README.md": "# Benchmarks\n[one](one.md), [two](two.md)\n",
    "docs/benchmarks/one.md": "# One\n",
    "docs/benchmarks/two.md": "# Two\n",
    "sites/README.md": "# Sites\n[a](docs/a.md)\n",
    "sites/docs/a.md": "# A\n[home](../../docs/how-to/fast.md)\n",
}


def built(root: Path, **changed: str) -> stage.Site:
    for name, text in {**FILES, **changed}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    site = stage.Site(root)
    site.build()
    return site


def tables(site: stage.Site) -> dict[str, list[str]]:
    """Return what the table of contents of each page has."""
    return {
        place: [line[1:] for line in text.splitlines() if line.startswith("/")]
        for place, text in site.pages.items()
        if "{toctree}" in text
    }


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("README.md", "index"),
        ("docs/how-to/fast.md", "how-to/fast"),
        ("docs/benchmarks/README.md", "benchmarks/index"),
        ("docs/how-to/p.png", "how-to/p.png"),
        ("sites/README.md", "sites/index"),
        ("sites/docs/how-to/a.md", "sites/how-to/a"),
        ("SECURITY.md", "project/security"),
        ("sites/sbom.cdx.json", "sites/sbom.cdx.json"),
    ],
)
def test_a_file_has_a_place(path: str, place: str) -> None:
    assert stage.place_of(Path(path)) == place


def test_links_lead_to_places_of_the_site(tmp_path: Path) -> None:
    site = built(tmp_path)
    assert "[a](index.md#it-is-slow) [b](../project/contributing.md)" in site.pages["how-to/fast"]
    assert "![p](p.png) [start](../index.md#install)" in site.pages["how-to/small"]
    assert "[x](y)" in site.pages["how-to/small"]
    assert "[licence](LICENSE), sources" in site.pages["project/changelog"]
    assert "[home](../how-to/fast.md)" in site.pages["sites/a"]
    assert set(site.files) == {"how-to/p.png", "project/LICENSE"}


def test_the_changelog_is_not_searched(tmp_path: Path) -> None:
    pages = built(tmp_path).pages
    assert [place for place, text in pages.items() if "no-search: true" in text] == [stage.CHANGES]


def test_a_folder_is_linked_where_the_project_has_an_address(tmp_path: Path) -> None:
    urls = "[project]\n[project.urls]\nSource = 'https://x.example/y/'\n"
    site = built(tmp_path, **{"pyproject.toml": urls})
    assert "[sources](https://x.example/y/tree/main/src)" in site.pages["project/changelog"]


def test_tables_of_contents_are_those_of_the_repository(tmp_path: Path) -> None:
    site = built(tmp_path)
    assert tables(site) == {
        "index": [
            *("how-to/index", "sites/index", "benchmarks/index", "api/index"),
            *("project/changelog", "project/contributing"),
        ],
        "how-to/index": ["how-to/fast", "how-to/small"],
        "benchmarks/index": ["benchmarks/one", "benchmarks/two"],
        "sites/index": ["sites/a"],
    }


def test_a_link_to_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(stage.SiteError, match=r"^docs/how-to/fast.md: none.md: there is no"):
        built(tmp_path, **{"docs/how-to/fast.md": "# Fast\n[a](none.md)\n"})


def test_every_page_of_the_repository_is_in_one_table() -> None:
    """Sphinx fails for the same, but not in the quick tests."""
    site = stage.Site()
    site.build()
    listed = [page for pages in tables(site).values() for page in pages]
    assert sorted(listed) == sorted(set(site.pages) - {"index"}), "docs/README.md links each page"


def test_merged_pages_lead_to_a_heading_that_is_there() -> None:
    moves = moved.places()
    assert len(moves) > 50
    anchors = {
        stage.place_of(path.relative_to(pages.ROOT)): pages.anchors(path.read_text("utf-8"))
        for path in pages.PAGES
    }
    assert moves.keys().isdisjoint(anchors), "a place that is used again"
    for old, new in moves.items():
        place, hash_, anchor = new.partition("#")
        assert place in anchors, old
        assert not hash_ or anchor in anchors[place], old


def test_there_are_at_most_a_hundred_pages() -> None:
    assert len([page for page in pages.PAGES if page.name != "README.md"]) < 100


def test_a_merged_page_leaves_one_behind(tmp_path: Path) -> None:
    moved.write(tmp_path, moved.places("a/b  c/d#e\nx y\n"))
    assert 'url=../c/d.html#e"' in (tmp_path / "a" / "b.html").read_text()
    assert '<a href="y.html">' in (tmp_path / "x.html").read_text()


def test_what_has_changed_is_written_and_what_is_gone_is_removed(tmp_path: Path) -> None:
    site = built(tmp_path / "repository")
    out = tmp_path / "pages"
    (out / "how-to").mkdir(parents=True)
    (out / "how-to" / "old.md").touch()
    stage.write(site, out)
    files = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert files == {*(f"{place}.md" for place in site.pages), *site.files}


def test_broken_links_of_a_built_site_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<p id="x"><a href="b.html#y"><a href="#z"><img src="c.png">')
    (tmp_path / "b.html").write_text('<p id="y"><a href="a.html#x"><a href="https://x.example">')
    assert broken(tmp_path) == [
        "a.html: #z: there is nothing of that name on the page",
        "a.html: c.png: there is no such file",
    ]


def test_docstrings_are_prose_with_code() -> None:
    text = "Takes *args of `f`s, some_name, a *word*.\n- `a`: b.\n\n```text\nf(x)\n```"
    assert docstrings.restructured(text) == (
        "Takes \\*args of ``f``\\ s, some\\_name, a *word*.\n\n- ``a``\\ : b.\n\n"
        ".. code-block:: text\n\n   f(x)"
    )
