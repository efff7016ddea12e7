"""Words and phrases that are not used in what people read: pages, help, messages.

    python -m tools.prose [FILE...]

prints `file:line: "what was found": what to write instead`, and ends with status 1 if there is any.
In pages, code blocks and code spans are no prose; nor is what stands between `<!-- prose: off -->`
and `<!-- prose: on -->`, for what has to be quoted. In the sources, string literals are read that
have at least three words; a line with `# prose: off` is left out. In comments and docstrings only
the words that no sentence may begin with are looked for.

docs/contributing/style.md says why.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools import messages
from tools.arrows import COMMENT

ROOT = Path(__file__).resolve().parent.parent

PAGES = (
    *("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs"),
    *(f"{each}/{name}" for each in ("lint", "sites") for name in ("README.md", "docs")),
)
SOURCES = ("src/cpythonplus", "lint/src", "sites/src")

KINDS = (".c", ".h", ".py")
LEAST_WORDS = 3  # of a literal that is text

# A sentence begins behind the end of another one, or where a paragraph, an item or a cell does.
_START = r"(?:(?<=[.!?:]\s)|(?<=\n\n)|(?<=[|*-]\s)|(?<=\A))"
BANNED = (
    (rf"{_START}Who\s(?=[^.?!|]*[.!|])", "begin with a noun: a client that ..., users who ..."),
    (r"\bshall\b", "must, or will"),
    (r"\bas ever\b", "as before, as usual"),
    (r"\bso\.(?=\s|$|\|)", "thus, in this way, or name it"),
    (r"\b(?:stand|stands|stood|standing) still\b", "pause, is paused"),
    (r"\bhung from\b", "kept alive by"),
    (r"\b(?:is|are) wanted\b", "expected"),
    (r"\bshow this and end\b", "show this message and exit"),
    (r"\b(?:is|are|was|were) told\b", "is printed, reported, described; asked to"),
    (r"\bof their own\.(?=\s|$|\|)", "say what: private memory, separate folders"),
    (r"\b(?:page|reference|section|line|report|it) tells\b", "says, shows, describes"),
    (r"\b(?:fields|defaults|numbers|table|tables|limits) stands? (?:in|below|above)\b", "is, are"),
    (r"\bimport table\b", "GOT, GOT entry"),
    (r"\bhung up on\b", "closes the connection"),
    (r"\b(?:mean|means) no good\b", "is hostile"),
    (r"\bsome per\s?cent\b", "a few percent"),
    (r"\bper cent\b", "percent, %"),
    (r"\b(?:is|are) said to be so\b", "is reported"),
)
# A sentence of a comment names its subject; these words begin one without.
_HEAD = re.compile(
    r"(?:\A|(?<=[.;:!?]\s)|(?<=[.;:!?]\s\s))(?:Where|Who|Whoever|What|Of|That of)\s(?=[a-z])"
)
_NO_SUBJECT = "begin with the subject: the thread, the tasklet, the caller"
_BANNED = [(re.compile(pattern.replace(" ", r"\s+")), advice) for pattern, advice in BANNED]

_QUOTED = re.compile(
    r"<!-- prose: off -->.*?<!-- prose: on -->|<!-- generated: .*?<!-- end of generated -->"
    r"|^```.*?^```$|^(?: {4}|\t)(?![-*\d|]).*?$|^#+ .*?$|<!--.*?-->|`[^`\n]+`|(?<=\])\([^)\s]+\)",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Hit:
    """One phrase that was found."""

    file: str
    line: int
    text: str
    advice: str

    def __str__(self) -> str:
        return f'{self.file}:{self.line}: "{" ".join(self.text.split())}": {self.advice}'


def _blank(match: re.Match[str]) -> str:
    inline = match[0][0] in "`("
    return re.sub(r"[^\n]", "X" if inline else " ", match[0])


def in_text(file: str, text: str, first_line: int = 1) -> Iterator[Hit]:
    """Look at plain text."""
    for pattern, advice in _BANNED:
        for match in pattern.finditer(text):
            yield Hit(file, first_line + text.count("\n", 0, match.start()), match[0], advice)


def in_page(file: str, text: str) -> list[Hit]:
    """Look at a page in Markdown."""
    return sorted(in_text(file, _QUOTED.sub(_blank, text)), key=lambda hit: hit.line)


def _docstrings(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def in_source(file: str, text: str) -> list[Hit]:
    """Look at the string literals of a Python file."""
    tree = ast.parse(text)
    lines = text.splitlines()
    skipped = {id(node) for node in _docstrings(tree)}
    hits: list[Hit] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in skipped:
            continue
        value, line = node.value, node.lineno
        is_text = isinstance(value, str) and len(value.split()) >= LEAST_WORDS
        if is_text and "# prose: off" not in lines[line - 1]:
            hits += in_text(file, str(value), line)
    return sorted(set(hits), key=lambda hit: hit.line)


def _c_comments(text: str) -> Iterator[tuple[int, str]]:
    for match in COMMENT.finditer(text):
        lines = match[0][2:-2].split("\n")
        words = "\n".join(line.strip().removeprefix("*").strip() for line in lines)
        yield 1 + text.count("\n", 0, match.start()), words


def _python_comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")
    for node in _docstrings(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def in_comments(file: str, text: str) -> list[Hit]:
    """Look at the comments and docstrings of a file in Python or C."""
    read = _python_comments if file.endswith(".py") else _c_comments
    return [
        Hit(file, line + words.count("\n", 0, match.start()), match[0], _NO_SUBJECT)
        for line, words in read(text)
        for match in _HEAD.finditer(words)
    ]


def _files() -> Iterator[Path]:
    for name in (*PAGES, *SOURCES):
        path = ROOT / name
        kinds = KINDS if name in SOURCES else (".md",)
        found = (each for each in path.rglob("*.*") if each.suffix in kinds)
        yield from sorted(found) if path.is_dir() else [path]


def in_files(paths: list[Path]) -> list[Hit]:
    """Look at pages and sources by their names."""
    hits: list[Hit] = []
    for path in paths:
        file = path.resolve().relative_to(ROOT).as_posix()
        text = path.read_text("utf-8")
        if path.suffix == ".py":
            hits += in_source(file, text)
        hits += in_comments(file, text) if path.suffix in KINDS else in_page(file, text)
    return hits


def in_c_messages() -> list[Hit]:
    """Look at the messages of the C files."""
    hits: list[Hit] = []
    for each in messages.messages():
        name, _, line = each.place.rpartition(":")
        if name.endswith(".c"):
            hits += in_text(f"src/cpythonplus/{name}", each.text, int(line))
    return hits


def main(arguments: list[str]) -> int:
    """Print what was found; status 1 if anything was."""
    if arguments:
        hits = in_files([Path(name) for name in arguments])
    else:
        hits = in_files(list(_files())) + in_c_messages()
    print("\n".join(map(str, hits)), end="\n" if hits else "")
    return 1 if hits else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
