"""What README quotes of the doctor is what it says, or what `make pictures` has seen."""

import html
import re
import subprocess
import sys

import pytest

from tests.docs import pages
from tests.docs.pages import ROOT

PICTURES = ROOT / "docs" / "pictures"
_TEXT = re.compile(r'<text class="[^"]*" x="[\d.]+" y="([\d.]+)"[^>]*>(.*?)</text>')
LARGEST = 150_000


def lines_of(name: str) -> list[str]:
    """Return the lines of a terminal that rich has drawn."""
    lines: dict[float, str] = {}
    for y, text in _TEXT.findall((PICTURES / f"{name}.svg").read_text("utf-8")):
        lines[float(y)] = lines.get(float(y), "") + html.unescape(text).replace("\xa0", " ")
    return [lines[y].rstrip() for y in sorted(lines)]


def memory_section() -> str:
    readme = (ROOT / "README.md").read_text("utf-8")
    return readme.partition("## Memory: ")[2].partition("\n## ")[0]


def test_readme_quotes_the_doctor() -> None:
    seen = lines_of("doctor-attach")
    quoted = [line[4:] for line in memory_section().splitlines() if line.startswith("    ")]
    assert quoted[0].startswith("$ cpythonplus doctor attach ")
    assert len(quoted) == 7
    assert [line for line in quoted if line not in seen] == []


def test_readme_quotes_the_longest_pause() -> None:
    paused = re.findall(
        r"paused for (\S+ ms|\S+ s)$", "\n".join(lines_of("doctor-attach")), re.MULTILINE
    )
    assert f"{paused[0]} in this run" in memory_section()


@pytest.mark.slow
def test_readme_quotes_what_grows() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    first, second, *rest = re.findall(
        r"^    (.*)$", readme.partition("**Install**")[0], re.MULTILINE
    )
    command = [sys.executable, "-m", "cpythonplus"]
    leak = subprocess.Popen([*command, "run", "benchmarks/demo/leak.py", "60"], cwd=ROOT)
    try:
        growth = [*command, "doctor", "growth", str(leak.pid), "--seconds", "2"]
        done = subprocess.run(growth, capture_output=True, text=True, check=False)
        while done.returncode and leak.poll() is None:  # it does not listen yet
            done = subprocess.run(growth, capture_output=True, text=True, check=False)
    finally:
        leak.kill()
        leak.wait()
    words = " ".join(done.stdout.replace(f"{ROOT}/", "").split())
    said = f"{words} end"
    for line in (f"{first} {second}", *rest):
        assert pages.matches(f"... {line.strip()} ...", said, any_numbers=True), f"{line}\n{said}"


def test_pictures_are_small_and_ask_for_nothing() -> None:
    pictures = sorted(PICTURES.iterdir())
    assert len(pictures) == 5
    for picture in pictures:
        assert picture.stat().st_size < LARGEST, picture.name
        if picture.suffix == ".svg":
            assert "url(http" not in picture.read_text("utf-8"), picture.name
