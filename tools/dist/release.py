"""What stands against a release of this checkout.

    python -m tools.dist.release [TAG]    says it, with status 1; the tag, if it has one
"""

import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from tools.sbom import version
from tools.setup_env import LINT, ROOT, SITES, pyproject

PLACEHOLDER = "example.invalid"
CHANGELOG = ROOT / "CHANGELOG.md"
CLOCK = SITES / "src" / "cpythonplus_sites" / "clock.py"


def _placeholders() -> list[str]:
    found = []
    for folder in (ROOT, LINT, SITES):
        urls = pyproject(folder)["project"]["urls"]
        if any(PLACEHOLDER in url for url in urls.values()):
            place = (folder / "pyproject.toml").relative_to(ROOT)
            found.append(f"[project.urls] of {place} has placeholders ({PLACEHOLDER})")
    return found


def _changes(number: str) -> list[str]:
    found = []
    left = [path.name for path in (ROOT / "changes").glob("*.*.md")]
    if left:
        found.append(f"{len(left)} fragments are left in changes/: make changelog")
    section = re.search(rf"^## {re.escape(number)} \((.+)\)$", CHANGELOG.read_text(), re.MULTILINE)
    if section is None:
        return [*found, f"CHANGELOG.md has no section {number}: make changelog"]
    floor = re.search(r"^FLOOR = (\d+)$", CLOCK.read_text(), re.MULTILINE)
    day = f"{datetime.fromtimestamp(int(floor[1]), UTC):%Y-%m-%d}" if floor else "missing"
    if day != section[1]:
        found.append(f"FLOOR in {CLOCK.name} is {day}, the day of {number} in CHANGELOG.md {section[1]}")
    return found


def _git(*arguments: str) -> list[str]:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def objections(tag: str = "") -> list[str]:
    """Return one line for each thing that has to be done first."""
    number = version()
    found = [*_placeholders(), *_changes(number)]
    for folder in (LINT, SITES):
        if (other := pyproject(folder)["project"]["version"]) != number:
            found.append(f"cpythonplus is {number}, cpythonplus-{folder.name} {other}")
    if changed := _git("status", "--porcelain"):
        found.append(f"{len(changed)} files are not committed: the archives have what git has")
    tags = [tag] if tag else [each for each in _git("tag", "--points-at", "HEAD") if each[0] == "v"]
    if tags and f"v{number}" not in tags:
        found.append(f"the tag is {tags[0]}, the version {number}")
    return found


def main(arguments: Sequence[str]) -> int:
    """Print them; 1 where there are any."""
    found = objections(*arguments)
    for each in found:
        print(f"not releasable: {each}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
