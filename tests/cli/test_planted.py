"""Reports, and fixed sources, where somebody else has put something at the name before."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cpythonplus._cli.arguments import UsageError
from cpythonplus._cli.commands.doctor_live import Request, tell
from cpythonplus._cli.main import main
from tests.cli.support import MODULE, execute, run

BAD = "def f():\n    e = ErrorOf()\n    raise e\n"
REFUSED = "is a symbolic link in a folder that others can write to"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim"
    path.write_text("precious")
    path.chmod(0o600)
    return path


def is_unharmed(victim: Path) -> bool:
    return (victim.read_text(), victim.stat().st_mode & 0o777) == ("precious", 0o600)


REPORTS = [
    ["run", "--stats", "--format", "json"],
    ["doctor", "cycles"],
    ["doctor", "run", "--format", "html"],
]
STATS = (*REPORTS[0][1:], "--output")
PLANT = """\
import os
name = f".report.{os.getpid()}.tmp"
os.symlink("../victim", name)
os.link("../victim", f"report.{os.getpid()}.new")
"""


@pytest.mark.parametrize("command", REPORTS, ids=" ".join)
def test_a_report_at_exit_is_not_written_through_a_link_at_an_old_name_of_ours(
    shared: Path, victim: Path, command: list[str]
) -> None:
    """The number of the process was a name that could be foreseen."""
    result = execute([*MODULE, *command, "--output", "report", "-c", PLANT], cwd=shared)
    assert result.status == 0, result
    assert is_unharmed(victim)
    assert (shared / "report").read_text() != "precious"
    assert (shared / "report").stat().st_size > 100


@pytest.mark.parametrize("command", REPORTS, ids=" ".join)
def test_a_report_at_exit_is_not_written_through_a_link_at_its_name(
    shared: Path, victim: Path, command: list[str]
) -> None:
    (shared / "report").symlink_to(victim)
    result = execute([*MODULE, *command, "--output", "report", "-c", ""], cwd=shared)
    assert result.status == 0
    assert result.err == f"cpythonplus: cannot write '{shared}/report': {REFUSED}\n"
    assert is_unharmed(victim)
    assert [path.name for path in shared.iterdir()] == ["report"]


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_standard_streams_are_files_too(tmp_path: Path, stream: str) -> None:
    """A pipe; and a file, which is written on at its end."""
    result = run(*STATS, f"/dev/{stream}", "-c", "print('first')")
    text = result.out if stream == "stdout" else result.err
    assert json.loads(text.removeprefix("first\n"))["pid"]
    code = "import sys; print('first', file=sys.stdout); print('first', file=sys.stderr)"
    number = {"stdout": 1, "stderr": 2}[stream]
    script = f'"$@" {number}>out'
    words = [*MODULE, "run", *STATS, f"/dev/{stream}", "-c", code]
    assert execute(["/bin/sh", "-c", script, "sh", *words], cwd=tmp_path).status == 0
    text = (tmp_path / "out").read_text()
    assert text.startswith("first\n{")
    assert json.loads(text.removeprefix("first\n"))["pid"]


def test_a_link_in_ones_own_folder_stays(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("real")
    assert run(*STATS, "link", "-c", "", cwd=tmp_path).err == ""
    assert (tmp_path / "link").is_symlink()
    assert json.loads((tmp_path / "real").read_text())["pid"]


def live_page(path: Path) -> None:
    request = Request()
    request.given = {"output": str(path)}
    tell("", request)


@pytest.mark.parametrize("write", [live_page])
def test_other_reports_are_not_written_through_links(
    shared: Path, victim: Path, write: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    path = shared / "report"
    path.symlink_to(victim)
    try:
        write(path)
        told = capsys.readouterr().err
    except (UsageError, OSError) as error:
        told = str(error)
    assert is_unharmed(victim)
    assert REFUSED in told
    path.unlink()
    path.hardlink_to(victim)
    write(path)
    assert is_unharmed(victim)
    assert not path.samefile(victim)


# ---- lint --fix ---------------------------------------------------------------------------------


def fix(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    status = main(["lint", "--fix", str(path)])
    return status, capsys.readouterr().out


def test_a_fix_is_not_written_through_a_link_at_an_old_name_of_ours(
    shared: Path, victim: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = shared / "a.py"
    file.write_text(BAD)
    (shared / f"a.py.{os.getpid()}.new").symlink_to(victim)
    assert fix(file, capsys) == (0, "Found 1 error (1 fixed, 0 remaining).\n")
    assert "finally" in file.read_text()
    assert not file.is_symlink()
    assert is_unharmed(victim)


def test_a_fix_is_not_written_through_a_link_at_the_name(
    tmp_path: Path, shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real = tmp_path / "real.py"
    real.write_text(BAD)
    (shared / "a.py").symlink_to(real)
    status, out = fix(shared / "a.py", capsys)
    assert (status, f"cannot be written: {REFUSED}" in out) == (1, True)
    assert real.read_text() == BAD
    (tmp_path / "a.py").symlink_to(real)
    assert fix(tmp_path / "a.py", capsys)[0] == 0
    assert (tmp_path / "a.py").is_symlink()
    assert "finally" in real.read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="plays another user: needs root")
@pytest.mark.parametrize("mode", [0o644, 0o600])
def test_a_fixed_file_is_whose_it_was(
    shared: Path, mode: int, capsys: pytest.CaptureFixture[str]
) -> None:
    file = shared / "a.py"
    file.write_text(BAD)
    file.chmod(mode)
    os.chown(file, 1234, 4321)
    assert fix(file, capsys)[0] == 0
    status = file.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (1234, 4321, mode)
    assert [path.name for path in shared.iterdir()] == ["a.py"]
