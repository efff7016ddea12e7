"""Which files are checked, and what becomes of those that cannot be."""

import errno
import os
import sys
from pathlib import Path

import pytest

from cpythonplus_lint import NoSuchPathError, Selection, check_stdin, find
from cpythonplus_lint.running import check_files

BAD = "def f():\n    e = ErrorOf()\n    raise e\n"


def write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(BAD)


def names(folder: Path, *exclude: str) -> list[str]:
    return [str(Path(path).relative_to(folder)) for path in find([str(folder)], exclude)]


def test_folders_are_gone_into_but_for_hidden_ones_and_environments(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "b/c.py", "b/c.pyi", "b/text.txt", ".git/x.py", "my/lib/y.py")
    write(tmp_path, "venv/z.py", "node_modules/q.py", "b/.hidden.py")
    (tmp_path / "my" / "pyvenv.cfg").touch()
    assert names(tmp_path) == ["a.py", "b/.hidden.py", "b/c.py"]
    assert find([str(tmp_path / "venv")]) == [str(tmp_path / "venv/z.py")]
    assert find([str(tmp_path / "b/text.txt")]) == [str(tmp_path / "b/text.txt")]


def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    write(tmp_path, "a/b/c.py")
    (tmp_path / "a" / "b" / "up").symlink_to(tmp_path / "a")
    (tmp_path / "a" / "gone.py").symlink_to(tmp_path / "nowhere.py")
    assert names(tmp_path) == ["a/b/c.py", "a/gone.py"]
    results = list(check_files(find([str(tmp_path)]), Selection()))
    assert [one.problem.message for one in results if one.problem is not None] == [
        "cannot be read: No such file or directory"
    ]


def test_a_file_is_checked_once(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    assert len(find([str(tmp_path), str(tmp_path / "a.py"), f"{tmp_path}/./a.py"])) == 1
    relative = os.path.relpath(tmp_path / "a.py")
    assert find([relative, str(tmp_path)]) == [relative]


def test_a_pipe_in_a_folder_is_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    write(tmp_path, "a.py")
    assert names(tmp_path) == ["a.py"]


def test_a_folder_that_may_not_be_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a.py", "b/c.py", "d/e.py")
    real = os.stat

    def refusing(path: str | Path, **options: bool) -> os.stat_result:
        if "b" in Path(path).parts:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, **options)

    monkeypatch.setattr(os, "stat", refusing)
    monkeypatch.setattr(Path, "stat", refusing)  # CPython 3.10 keeps os.stat elsewhere
    assert names(tmp_path) == ["a.py", "b", "d/e.py"]
    assert find([f"{tmp_path}/b/c.py"]) == [f"{tmp_path}/b/c.py"]


def test_a_name_that_is_too_long_is_one_line() -> None:
    (result,) = check_files(find(["x" * 5000]), Selection())
    assert result.problem is not None
    assert result.problem.message == "cannot be read: File name too long"


def test_a_file_that_may_not_be_written_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a.py")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everything
    (result,) = check_files([str(tmp_path / "a.py")], Selection(), fix=True)
    assert result.problem is not None
    assert result.problem.message == "cannot be written: Permission denied"
    assert (tmp_path / "a.py").read_text() == BAD


@pytest.mark.parametrize("pattern", ["old", "*/old/*", "old*", "b.py"])
def test_excluded(tmp_path: Path, pattern: str) -> None:
    write(tmp_path, "a.py", "old/b.py")
    assert names(tmp_path, pattern) == ["a.py"]


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NoSuchPathError):
        find([str(tmp_path / "none")])


DEEP = "x = " + "(" * 5000 + ")" * 5000
LONG = "x = " + " + ".join(["y"] * 100_000)


UNREADABLE = {
    "syntax": (b"def f(:\n", 1, "invalid syntax"),
    "indent": (b"x = 1\nif x:\npass\n", 3, "expected an indented block"),
    "null": (b"x = 1\n\0\n", 2, "source contains null bytes"),
    "utf-8": (b"x = 1\n# \xff\n", 2, "not decodable as utf-8: byte 0xff"),
    "cookie": (b"# coding: latin-2000\n", 1, "unknown encoding"),
    "ascii": (b"# coding: ascii\nx = '\xc3'\n", 2, "not decodable as ascii: byte 0xc3"),
    "mark": (b"\xef\xbb\xbf# coding: latin-1\n", 1, "encoding problem"),
    "undefined": (b"# coding: undefined\n", 1, "undefined encoding"),
    "deep": (DEEP.encode(), 1, "too "),
    "long": (LONG.encode(), 1, "too deeply nested"),
    "number": (b"x = " + b"9" * 5000, 1, "integer string"),
}
if sys.version_info < (3, 11):
    del UNREADABLE["long"]  # which CPython 3.10 reads


@pytest.mark.parametrize(("data", "row", "message"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_one_line(data: bytes, row: int, message: str) -> None:
    found = check_stdin(data, "-", Selection())[0].problem
    assert found is not None
    assert found.row == row
    assert message in found.message
    assert "\n" not in found.message


@pytest.mark.parametrize(
    "data",
    [
        BAD.encode(),
        b"\xef\xbb\xbf" + BAD.encode(),
        b"# coding: latin-1\n# \xe4\n" + BAD.encode(),
        BAD.replace("\n", "\r\n").encode(),
        BAD.replace("\n", "\r").encode(),
        b"\x0c" + BAD.encode(),
        BAD.encode() + b"x = '\\d'\n",
        BAD.encode() + b"x = [" + b"1 +" * 500 + b"1]\n",
        BAD.encode() + b"if x: pass\n" + b"elif x: pass\n" * 600,
    ],
    ids=["plain", "bom", "latin-1", "crlf", "cr", "form feed", "escape", "sum", "elif"],
)
def test_what_can_be_read(data: bytes) -> None:
    found, _ = check_stdin(data, "-", Selection())
    assert found.problem is None
    assert [hit.code for hit in found.violations] == ["CYC105"]


def test_several_processes_find_the_same(tmp_path: Path) -> None:
    write(tmp_path, *(f"{number}.py" for number in range(60)))
    files = find([str(tmp_path)])
    alone, together = (list(check_files(files, Selection(), jobs=jobs)) for jobs in (1, 2))
    assert alone == together
    assert [one.path for one in together] == files
    assert sum(len(one.violations) for one in together) == 60
