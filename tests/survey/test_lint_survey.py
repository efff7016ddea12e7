"""The survey of lint: what it unpacks, counts and writes. Nothing is downloaded here."""

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from survey import lint

BAD = "def f():\n    e = ErrorOf()\n    raise e\n"
pytestmark = pytest.mark.any_version


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pack" / "tests").mkdir(parents=True)
    (tmp_path / "pack" / "a.py").write_text(BAD)
    (tmp_path / "pack" / "broken.py").write_text("def f(:\n")
    (tmp_path / "pack" / "tests" / "b.py").write_text(BAD)
    return tmp_path


def test_a_package_is_counted_without_its_tests(folder: Path) -> None:
    row = lint.surveyed("pack==1", folder)
    assert (row.lines, dict(row.counts), row.fixable, row.broken) == (4, {"CYC105": 1}, 1, 0)
    (unread,) = row.unread
    assert unread.startswith("pack/broken.py: ")


def test_the_python_files_of_an_archive(tmp_path: Path) -> None:
    wheel, source = tmp_path / "p.whl", tmp_path / "p.tar.gz"
    with zipfile.ZipFile(wheel, "w") as zipped:
        zipped.writestr("p/a.py", BAD)
        zipped.writestr("p/a.so", "")
    with tarfile.open(source, "w:gz") as packed:
        for name in ("p/a.py", "p/README"):
            member = tarfile.TarInfo(name)
            member.size = len(BAD)
            packed.addfile(member, io.BytesIO(BAD.encode()))
    for archive in (wheel, source):
        found = tmp_path / archive.suffix
        lint._unpack(archive, found)
        assert [path.name for path in found.rglob("*") if path.is_file()] == ["a.py"]


def test_the_page_is_whole() -> None:
    page = lint.PAGE.read_text("utf-8")
    table = page.partition(lint.BEGIN)[2].partition(lint.END)[0]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines() if "==" in line]
    assert rows == lint.packages()
    assert lint.written(page, table.strip("\n")) == page
    with pytest.raises(lint.SurveyError):
        lint.written("no marks", "")
