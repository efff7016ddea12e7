"""Checks the links of a built site: each leads to a file of it, and to something on that page."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """What a page links, and what can be linked on it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what the tag says."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        # The theme's own icons are drawn from <symbol>s of the page.
        if tag in ("a", "img", "link", "script", "source"):
            self.targets |= {found[name] for name in ("href", "src", "srcset") if found.get(name)}


def broken(site: Path) -> list[str]:
    """Return a line for each link of a page that leads nowhere; the web is not asked."""
    pages = {path: _Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    return [
        f"{path.relative_to(site)}: {target}: {problem}"
        for path, page in pages.items()
        for target, problem in _problems(path, page, pages)
    ]


def _problems(path: Path, page: _Page, pages: dict[Path, _Page]) -> Iterator[tuple[str, str]]:
    for target in sorted(page.targets):
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            continue
        file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        anchor = unquote(parts.fragment)
        if not file.is_file():
            yield target, "there is no such file"
        elif anchor and file in pages and anchor not in pages[file].anchors:
            yield target, "there is nothing of that name on the page"
