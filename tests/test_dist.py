"""What `make dist` refuses in an archive, and what it says against a release."""

import io
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from tools.dist import __main__ as dist
from tools.dist import release
from tools.sbom import version

pytestmark = pytest.mark.any_version

SOURCES = ("__init__.py", "_native.c", "_native.pyi", "py.typed", "meson.build", "gil/__init__.py")
HOOKS = ("cpythonplus.pth", "cpythonplus.start")
INFO = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
PACKED = {
    *(f"cpythonplus/{name}" for name in SOURCES if not name.endswith((".c", ".build"))),
    *HOOKS,
    "cpythonplus/_native.cpython-313-x86_64-linux-gnu.so",
    *(f"cpythonplus-9.9.0.dist-info/{name}" for name in INFO),
}


@pytest.fixture
def sdist(tmp_path: Path) -> Path:
    path = tmp_path / "cpythonplus-9.9.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in (*SOURCES, *HOOKS):
            member = tarfile.TarInfo(f"cpythonplus-9.9.0/src/cpythonplus/{name}")
            archive.addfile(member, io.BytesIO())
    return path


def wheel(folder: Path, names: Iterable[str]) -> Path:
    path = folder / "cpythonplus-9.9.0-cp313-cp313-manylinux_2_34_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return path


def test_what_is_in_a_wheel_is_said(tmp_path: Path, sdist: Path) -> None:
    assert dist.check_wheel(wheel(tmp_path, PACKED), sdist) == (
        "2 .py, 1 .so, cpythonplus.pth, cpythonplus.start, _native.pyi, py.typed, LICENSE"
    )


@pytest.mark.parametrize("name", sorted(PACKED))
def test_a_wheel_lacks_nothing(tmp_path: Path, sdist: Path, name: str) -> None:
    with pytest.raises(dist.DistError):
        dist.check_wheel(wheel(tmp_path, PACKED - {name}), sdist)


@pytest.mark.parametrize(
    "name",
    [
        "cpythonplus/_test_native.cpython-313-x86_64-linux-gnu.so",
        "cpythonplus/_native.c",
        "tests/test_dist.py",
        "other.pth",
    ],
)
def test_a_wheel_has_nothing_besides(tmp_path: Path, sdist: Path, name: str) -> None:
    with pytest.raises(dist.DistError, match="has besides"):
        dist.check_wheel(wheel(tmp_path, {*PACKED, name}), sdist)


def test_placeholders_are_not_released(monkeypatch: pytest.MonkeyPatch) -> None:
    def project(url: str) -> object:
        return lambda _: {"project": {"urls": {"Source": url}, "version": version()}}

    def said() -> str:
        return "\n".join(release.objections(f"v{version()}"))

    monkeypatch.setattr(release, "_git", lambda *_: [])
    monkeypatch.setattr(release, "pyproject", project("https://example.invalid/x"))
    assert "[project.urls] of pyproject.toml has placeholders" in said()
    monkeypatch.setattr(release, "pyproject", project("https://git.example.org/x"))
    assert "placeholders" not in said()


@pytest.mark.skipif(
    not Path(__file__, "../../.git").resolve().exists(), reason="a copy without git's folder"
)
def test_a_tag_has_to_be_the_version() -> None:
    assert f"the tag is v0.0.1, the version {version()}" in release.objections("v0.0.1")
