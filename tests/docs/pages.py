"""Reads the documentation: its blocks of code, what is marked about them, and its links.

An HTML comment on the line in front of a block says what the tests do with it:

    <!-- file: NAME -->        it is a file of that name, there for what follows; python or toml
    <!-- file: NAME, run below -->
                               the same, but it does not run: a console block behind it runs it
    <!-- run -->               console: its `$ cpythonplus ...` lines must end with status 0
    <!-- compare -->           the same, and what they print must be what stands below them
    <!-- compare, fails -->    the same, with status 1
    <!-- compare, but numbers -->
    <!-- fails -->             python: an exception ends it, with status 1; also `file: NAME, fails`
    <!-- output -->            text: what the python block before it prints, its traceback included
    <!-- output, but numbers -->
    <!-- not run: REASON -->   python: it is left out
    <!-- with redis -->        python: a Redis runs, whose URL is in REDIS_URL
    <!-- with postgres -->     python: a PostgreSQL runs, whose URL is in DATABASE_URL

Without one, a python block runs, in a process of its own, and a console block does not. In what is
compared, `...` stands for anything, also for several lines. With `but numbers`, those may be others
that depend on the version or the machine, with other units; a line's number (`a.py:12`) may not.
The folder in which the example runs does not stand in front of its files.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "lint/README.md", "sites/README.md")),
    *(
        page
        for name in ("docs", "lint/docs", "sites/docs")
        for page in sorted((ROOT / name).rglob("*.md"))
    ),
]
LINKED = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "changes" / "README.md"]

_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n+)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w:.,])\d[\d,.]*(?: (?:B|KiB|MiB|GiB)\b)?")
_LINK = re.compile(
    r"\[[^\]]*\]\((?P<inline>[^)\s]+)\)|^\[[^\]]+\]: (?P<reference>\S+)", re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    """One block of code."""

    page: Path
    line: int
    language: str
    mark: str
    text: str
    files: tuple[tuple[str, str], ...]
    """Names and texts of the files in front of it on the page."""
    output: str | None = None
    """What it prints, if the page says so."""
    any_numbers: bool = False
    """Whether it may print other numbers."""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def file_name(self) -> str | None:
        if not self.mark.startswith("file: "):
            return None
        return self.mark.removeprefix("file: ").removesuffix(", fails").removesuffix(", run below")

    @property
    def server(self) -> str | None:
        """Which server has to run."""
        return self.mark.removeprefix("with ") if self.mark.startswith("with ") else None

    @property
    def status(self) -> int:
        """The status that a python or a console block ends with."""
        return int(self.mark == "fails" or self.mark.endswith(", fails"))

    @property
    def is_compared(self) -> bool:
        """Whether a console block is run and must print what stands in it."""
        return self.mark in ("compare", "compare, fails")

    @property
    def left_out(self) -> str | None:
        """Why the block is not run by itself."""
        if self.mark.endswith(", run below"):
            return "run below"
        if self.mark.startswith("not run"):
            return self.mark.removeprefix("not run").removeprefix(": ")
        return None

    def commands(self) -> list[str]:
        """What stands behind `$ ` in a console block."""
        return [line[2:] for line in self.text.splitlines() if line.startswith("$ ")]

    def printed(self) -> str:
        """What stands below the commands in a console block."""
        lines = self.text.splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith("$ "))


def blocks(page: Path, text: str) -> list[Block]:
    found: list[Block] = []
    files: list[tuple[str, str]] = []
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("text"))
        mark = match["mark"] or ""
        if mark.startswith(("generated: ", "end of generated", "measured:")):
            mark = ""  # of the tools that write parts of the pages, not about the block
        any_numbers = mark.endswith(", but numbers")
        mark = mark.removesuffix(", but numbers")
        block = Block(page, line, match["language"], mark, match["text"], tuple(files))
        block = replace(block, any_numbers=any_numbers)
        if block.file_name is not None:
            files.append((block.file_name, block.text))
        if mark == "output" and found:
            found[-1] = replace(found[-1], output=block.text, any_numbers=any_numbers)
        found.append(block)
    return found


def matches(expected: str, printed: str, *, any_numbers: bool = False) -> bool:
    """Whether a program has printed what a page says; white space at the ends of lines is free.

    any_numbers: numbers and sizes may be others.
    """

    def lines(text: str) -> str:
        text = "\n".join(line.rstrip() for line in text.strip().splitlines())
        # Columns move with the widths of their numbers.
        return re.sub(" +", " ", _NUMBER.sub("7", text)) if any_numbers else text

    pattern = ".*?".join(map(re.escape, lines(expected).split("...")))
    return re.fullmatch(pattern, lines(printed), re.DOTALL) is not None


def all_blocks() -> list[Block]:
    return [block for page in PAGES for block in blocks(page, page.read_text("utf-8"))]


def links(text: str) -> list[str]:
    """The targets of all links outside of blocks of code."""
    prose = _FENCED.sub("", text)
    return [m["inline"] or m["reference"] for m in _LINK.finditer(prose)]


def anchors(text: str) -> set[str]:
    """What a link can have behind `#`: the headings as GitHub writes them."""
    headings = re.findall(r"^#+ (.*)$", _FENCED.sub("", text), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


def broken(page: Path, text: str) -> list[str]:
    """The links of a page whose target is not there; addresses of the web are not looked at."""
    found = []
    for target in links(text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            found.append(f"{target}: there is no such file")
        elif anchor and anchor not in anchors(file.read_text("utf-8")):
            found.append(f"{target}: there is no such heading")
    return found
