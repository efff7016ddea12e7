"""Pages that were merged into others: each leaves a page behind that leads to its new place.

moved.txt has a line for each: the old place in the site, and the new one with its heading.
"""

import re
from html import escape
from pathlib import Path
from posixpath import dirname, relpath

LIST = Path(__file__).with_name("moved.txt")
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>This page has moved</title>
<meta http-equiv="refresh" content="0; url={target}">
<link rel="canonical" href="{target}">
<p>This page has moved: <a href="{target}">{target}</a></p>
</html>
"""


def places(text: str | None = None) -> dict[str, str]:
    """Return the new place of each old one."""
    lines = (LIST.read_text("utf-8") if text is None else text).splitlines()
    return dict(line.split() for line in lines)


def write(site: Path, moves: dict[str, str] | None = None) -> None:
    """Write the pages that lead on into a built site."""
    for old, new in (places() if moves is None else moves).items():
        page = site / f"{old}.html"
        target = relpath(re.sub(r"(?=#|$)", ".html", new, count=1), dirname(old))
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(_PAGE.format(target=escape(target)), "utf-8")
