"""The examples of the documentation run, and its links lead somewhere."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.docs import as_typed, pages
from tests.support import LOAD

pytestmark = pytest.mark.slow  # all together

TIMEOUT_S = LOAD * 60
PROGRAMS = {
    "cpythonplus": "cpythonplus",
    "cpythonplus-clock": "cpythonplus_sites.commands.clock_entry",
    "cpythonplus-lint": "cpythonplus_lint",
    "cpythonplus-sites": "cpythonplus_sites",
    "pytest": "pytest",
}
"""What a console block may run, and its module."""
# What a page calls a server: the fixture that starts it, and how its example is told where it is.
SERVERS = {
    "redis": ("redis_server", "REDIS_URL"),
    "postgres": ("postgres_server", "DATABASE_URL"),
}

BLOCKS = pages.all_blocks()
PYTHON = [block for block in BLOCKS if block.language == "python"]
ALONE = [block for block in PYTHON if block.left_out != "run below"]
CONSOLE = [block for block in BLOCKS if block.language == "console"]
RUNNABLE = [block for block in CONSOLE if block.mark == "run" or block.is_compared]
OUTPUTS = [block for block in BLOCKS if block.mark == "output"]


def start(
    command: list[str], folder: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {name: v for name, v in os.environ.items() if name != "CPYTHONPLUS_RUN"}
    # pytest draws lines as wide as it takes the terminal to be.
    environment["COLUMNS"] = "80"
    # As in an environment that was activated.
    environment["PATH"] = f"{Path(command[0]).parent}{os.pathsep}{environment['PATH']}"
    return subprocess.run(
        command,
        check=False,
        cwd=folder,
        env={**environment, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


def without_folder(printed: str, folder: Path) -> str:
    return printed.replace(f"{folder}{os.sep}", "")


def write_files(block: pages.Block, folder: Path) -> None:
    for name, text in block.files:
        (folder / name).write_text(text, "utf-8")


@pytest.mark.parametrize("block", ALONE, ids=str)
def test_python_example(
    block: pages.Block, python: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if block.left_out is not None:
        pytest.skip(f"marked as not run: {block.left_out}")
    environment = {}
    if block.server is not None:
        fixture, name = SERVERS[block.server]
        environment[name] = request.getfixturevalue(fixture).url
    write_files(block, tmp_path)
    program = tmp_path / (block.file_name or "example.py")
    program.write_text(block.text, "utf-8")
    done = start([python, str(program)], tmp_path, environment)
    printed = without_folder(done.stdout + done.stderr, tmp_path)
    assert done.returncode == block.status, f"{block}\n{printed}"
    if block.output is not None:
        same = pages.matches(block.output, printed, any_numbers=block.any_numbers)
        assert same, f"{block}\n{printed}"


@pytest.mark.parametrize("block", RUNNABLE, ids=str)
def test_console_example(block: pages.Block, python: str, tmp_path: Path) -> None:
    write_files(block, tmp_path)
    commands = [shlex.split(command) for command in block.commands()]
    assert commands, f"{block} has no command"
    printed = ""
    for program, *arguments in commands:
        assert program in ("python", *PROGRAMS), f"{block}: only python and {[*PROGRAMS]} are run"
        module = ["-m", PROGRAMS[program]] if program in PROGRAMS else []
        done = start([python, *module, *arguments], tmp_path)
        printed += without_folder(done.stdout + done.stderr, tmp_path)
        assert done.returncode == block.status, f"{block}: {arguments}\n{printed}"
    if block.is_compared:
        same = pages.matches(block.printed(), printed, any_numbers=block.any_numbers)
        assert same, f"{block}\n{printed}"


def is_known(block: pages.Block) -> bool:
    if block.language == "python":
        known = not block.mark or block.mark == "fails"
        known = known or block.file_name is not None or block.server in SERVERS
        return known or bool(block.left_out)
    if block.language == "toml":
        return not block.mark or block.file_name is not None
    marks = {"console": ("", "run", "compare", "compare, fails"), "text": ("", "output")}
    return block.mark in marks.get(block.language, ("",))


def test_marks_are_known() -> None:
    """A mark with a typing error would silently leave an example out."""
    odd = [f"{block}: {block.mark!r}" for block in BLOCKS if not is_known(block)]
    assert odd == []


def test_there_are_examples() -> None:
    """The pattern that finds them still fits."""
    fences = sum(page.read_text("utf-8").count("```python\n") for page in pages.PAGES)
    assert len(PYTHON) == fences > 10
    fences = sum(page.read_text("utf-8").count("```console\n") for page in pages.PAGES)
    assert len(CONSOLE) == fences >= len(RUNNABLE) > 3
    assert len([block for block in ALONE if block.left_out]) <= len(PYTHON) // 4
    assert len([block for block in PYTHON if block.output]) == len(OUTPUTS) > 10


def test_what_is_run_below_is_run_below() -> None:
    later = [block for block in PYTHON if block not in ALONE]
    assert len(later) >= 3
    for file in later:
        below = [block for block in RUNNABLE if (file.file_name, file.text) in block.files]
        words = {word for block in below for line in block.commands() for word in line.split()}
        assert file.file_name in words, f"{file}: no console block runs it"


@pytest.mark.parametrize("page", pages.LINKED, ids=lambda page: str(page.relative_to(pages.ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert pages.broken(page, page.read_text("utf-8")) == []


@pytest.mark.parametrize("name", ["docs/README.md", "sites/README.md"])
def test_every_page_stands_in_the_index(name: str) -> None:
    index = pages.ROOT / name
    targets = pages.links(index.read_text("utf-8"))
    listed = {(index.parent / target.partition("#")[0]).resolve() for target in targets}
    written = {page for page in pages.PAGES if page.is_relative_to(index.parent)}
    assert written - listed == {index}


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = "# One & two\n[a](#one--two) [b](#three) [c](none.md) [d](https://x.example)\n"
    page.write_text(text)
    assert pages.broken(page, text) == [
        "#three: there is no such heading",
        "none.md: there is no such file",
    ]


def test_marks_and_files_are_read() -> None:
    text = (
        "<!-- file: a.py -->\n```python\npass\n```\n\n"
        "<!-- not run: needs a server -->\n```python\n1 / 0\n```\n\n"
        "<!-- run -->\n```console\n$ cpythonplus run a.py\nwhat it prints\n```\n"
    )
    first, second, third = pages.blocks(pages.ROOT / "page.md", text)
    assert first.file_name == "a.py"
    assert first.left_out is None
    assert second.left_out == "needs a server"
    assert third.files == (("a.py", "pass\n"),)
    assert third.commands() == ["cpythonplus run a.py"]
    assert third.printed() == "what it prints\n"


def test_a_page_says_what_it_needs() -> None:
    text = (
        "```console\n$ pip install '.[serve]' django \\\n    flask  # both\n"
        "# /opt/x/bin/pip install ./lint\n"
        "$ python3 -m pip install --upgrade 'cpythonplus[native]' redis\n```\n"
    )
    assert as_typed.packages(text) == {"django", "flask", "redis", str(pages.ROOT / "lint")}


def test_outputs_are_read() -> None:
    text = (
        "<!-- file: a.py, fails -->\n```python\n1 / 0\n```\n\nsays\n\n"
        "<!-- output -->\n```text\nTraceback ...\n```\n"
    )
    program, output = pages.blocks(pages.ROOT / "page.md", text)
    assert (program.file_name, program.status, program.output) == ("a.py", 1, output.text)
    assert pages.matches("a ...\n...c\n", "a b\nb\nb c\n")
    assert not pages.matches("a ...\n", "b a\n")
    assert not pages.matches("a\n", "a\nb\n")


def test_numbers_may_be_free() -> None:
    text = (
        "```python\npass\n```\n<!-- output, but numbers -->\n```text\n1\n```\n"
        "<!-- compare, but numbers -->\n```console\n$ cpythonplus x\n2\n```\n"
        "<!-- compare -->\n```console\n$ cpythonplus x\n2\n```\n"
    )
    program, _, console, exact = pages.blocks(pages.ROOT / "page.md", text)
    assert (program.output, program.any_numbers) == ("1\n", True)
    assert (console.mark, console.any_numbers) == ("compare", True)
    assert (exact.mark, exact.any_numbers) == ("compare", False)
    expected = "a.py:12: once, 1,234 objects, 1.5 MiB of x2"
    assert pages.matches(expected, "a.py:12: once, 2 objects, 3 B of x2", any_numbers=True)
    assert not pages.matches(expected, "a.py:12: once, 2 objects, 3 B of x2")
    assert not pages.matches(expected, "a.py:13: once, 2 objects, 3 B of x2", any_numbers=True)
    assert not pages.matches(expected, "a.py:12: once, 2 objects, 3 B of x3", any_numbers=True)
