"""Moves the fragments of changes/ into the next version's section of CHANGELOG.md.

    python -m tools.changelog [--date YYYY-MM-DD]    make changelog

The version is that of meson.build.  towncrier reads the fragments; here they are grouped by what
they are about.  A section of that version that is there already, and not yet tagged, keeps what was
written into it by hand, and gets what is new: so it may be run again until the release.  The day of
the section is also that below which no clock is right (FLOOR of cpythonplus-clock).
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tools.sbom import version
from tools.setup_env import ROOT

CHANGELOG = "CHANGELOG.md"
CLOCK = "sites/src/cpythonplus_sites/clock.py"
CLOCK_PAGES = (
    "sites/docs/reference/clock.md",
    "sites/docs/how-to/clock-without-a-chip.md",
)
START = "<!-- towncrier release notes start -->\n"
KINDS = ("Added", "Changed", "Fixed", "Removed")

# By the fragment's issue; where that is about everything, by the first of these words in its text.
_AREAS: tuple[tuple[str, set[int], str], ...] = (
    ("GIL and threads", {2, 3, 19}, r"`atomic`|threads\.|\bthe GIL\b|run --stats|--policy"),
    ("serve: forked workers", {4}, r"serve\b|prefork|gunicorn|uWSGI|celery"),
    ("Tasklets", {5, 9, 20}, r"[Tt]asklet|run_for|channel\(\)"),
    ("Memory and the doctor", {7}, r"doctor|memory\.|allocator"),
    ("Reference cycles", {6}, r"lint\b|[Cc]ycles?\b"),
    ("Sites and clocks", {8}, r"\bsites?\b|clock"),
    ("Compatibility and building", {18}, r"musl|aarch64|C extension|debug build|CPYTHONPLUS_RUN"),
)
_OTHERS = "The package as a whole"
ORDER = (*(name for name, _, _ in _AREAS), _OTHERS)

Section = dict[str, dict[str, list[str]]]
"""By area and kind: the texts, in Markdown without the bullet."""


def area(issue: int, text: str) -> str:
    """Return what a fragment is about."""
    for name, issues, _ in _AREAS:
        if issue in issues:
            return name
    matches = [(re.search(words, text), name) for name, _, words in _AREAS]
    return min(((m.start(), name) for m, name in matches if m), default=(0, _OTHERS))[1]


def bullets(text: str) -> list[str]:
    """The texts of a list, without its bullets and indentation."""
    items = re.split(r"^- ", text, flags=re.MULTILINE)[1:]
    return [re.sub(r"\n +", "\n", item).removeprefix("- ").strip() for item in items]


def from_towncrier(draft: str) -> Section:
    """What the fragments say, grouped."""
    section: Section = {}
    for part in re.split(r"^### ", draft, flags=re.MULTILINE)[1:]:
        kind, _, text = part.partition("\n")
        for item in bullets(text):
            match = re.fullmatch(r"(?s)(.*?)(?:\s\(#(\d+)(?:, #\d+)*\))?", item)
            words = match[1] if match else item
            issue = int(match[2] or 0) if match else 0
            section.setdefault(area(issue, words), {}).setdefault(kind, []).append(words)
    return section


def from_changelog(text: str) -> tuple[str, Section]:
    """Of a section without its heading: what stands in front of the first list, and the lists."""
    front, *parts = re.split(r"^### ", text, flags=re.MULTILINE)
    section: Section = {}
    for part in parts:
        name, _, lists = part.partition("\n")
        for each in re.split(r"^#### ", lists, flags=re.MULTILINE)[1:]:
            kind, _, items = each.partition("\n")
            section.setdefault(name, {})[kind] = bullets(items)
    return front.strip(), section


def written(number: str, date: str, front: str, section: Section) -> str:
    """A section of the file."""
    lines = [f"## {number} ({date})", ""]
    lines += [front, ""] if front else []
    for name in sorted(section, key=lambda each: (*ORDER, each).index(each)):
        lines += [f"### {name}", ""]
        for kind in sorted(section[name], key=lambda each: (*KINDS, each).index(each)):
            lines += [f"#### {kind}", ""]
            lines += ["- " + item.replace("\n", "\n  ") for item in section[name][kind]]
            lines.append("")
    return "\n".join(lines) + "\n"


def merged(text: str, new: Section, number: str, date: str) -> str:
    """The whole file, with what is new in the section of that version, which may be there."""
    head, start, rest = text.partition(START)
    top, *older = re.split(r"^(?=## )", rest, flags=re.MULTILINE)
    front, section = "", Section()
    if older and older[0].startswith(f"## {number} ("):
        front, section = from_changelog(older.pop(0).partition("\n")[2])
    for name, kinds in new.items():
        for kind, items in kinds.items():
            there = section.setdefault(name, {}).setdefault(kind, [])
            there += [item for item in items if item not in there]
    return f"{head}{start}{top.rstrip()}\n{written(number, date, front, section)}{''.join(older)}"


def with_floor(source: str, date: str) -> str:
    """The clock's source with the floor of that day."""
    seconds = int(datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp())
    return re.sub(
        r'^FLOOR = \d+\n"""[\d-]+,', f'FLOOR = {seconds}\n"""{date},', source, flags=re.MULTILINE
    )


def with_floor_on_page(text: str, date: str) -> str:
    """A page about the clock with the floor of that day."""
    return re.sub(r"([Ff]loor[*]*: )[\d-]{10}", rf"\g<1>{date}", text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the file and remove the fragments; 1 where the version is out already."""
    parser = argparse.ArgumentParser(prog="make changelog", description="CHANGELOG.md of fragments")
    parser.add_argument("--date", default=f"{datetime.now(UTC):%Y-%m-%d}", help="of the release")
    options = parser.parse_args(arguments)
    number = version()
    tags = subprocess.run(
        ["git", "tag", "--list", f"v{number}"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    if tags.stdout:
        print(f"{number} is tagged already: give meson.build the next version", file=sys.stderr)
        return 1
    fragments = [path for path in (ROOT / "changes").glob("*.md") if path.name != "README.md"]
    command = ["towncrier", "build", "--draft", "--version", number]
    draft = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    if draft.returncode != 0:
        return draft.returncode  # it has said why
    new = from_towncrier(draft.stdout)
    count = sum(len(items) for kinds in new.values() for items in kinds.values())
    if count != len(fragments):
        print(f"{len(fragments)} fragments, but towncrier reads {count}", file=sys.stderr)
        return 1
    path = Path(ROOT, CHANGELOG)
    path.write_text(merged(path.read_text(), new, number, options.date))
    clock = Path(ROOT, CLOCK)
    clock.write_text(with_floor(clock.read_text(), options.date))
    for page in (Path(ROOT, name) for name in CLOCK_PAGES):
        page.write_text(with_floor_on_page(page.read_text(), options.date))
    for fragment in fragments:
        fragment.unlink()
    print(f"{CHANGELOG}: {count} fragments went into {number}; what was written by hand was kept")
    return 0


if __name__ == "__main__":
    sys.exit(main())
