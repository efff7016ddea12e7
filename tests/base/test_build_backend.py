"""What `pip install` says where the package cannot be compiled: one line, before it tries."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import child_environment
from tools.setup_env import ROOT, headers_environment

pytestmark = [
    pytest.mark.any_version,
    pytest.mark.skipif(sys.platform != "linux", reason="nothing is compiled elsewhere"),
]

HOOK = """\
import sys
sys.path.insert(0, sys.argv[1])
import checked_meson
print(checked_meson.get_requires_for_build_wheel(eval(sys.argv[2])))
"""


def hook(
    path: str, settings: str = "None", program: str = HOOK, **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value
        for name, value in child_environment({"PATH": path}).items()
        if name not in {"CC", "CPATH"}
    }
    return subprocess.run(
        [sys.executable, "-c", program, str(ROOT / "tools" / "build_backend"), settings],
        capture_output=True,
        text=True,
        check=False,
        env=environment | variables,
    )


def only_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


def test_without_a_compiler(tmp_path: Path) -> None:
    line = only_line(hook(str(tmp_path)))
    assert line.startswith("cpythonplus cannot be built: no C compiler was found (looked for cc,")
    assert "apt-get install gcc libc6-dev;" in line


def test_the_compiler_that_is_named_is_the_one_that_is_looked_for() -> None:
    assert "(looked for nonesuch -m64)" in only_line(hook(os.environ["PATH"], CC="nonesuch -m64"))


def test_without_the_c_librarys_headers(tmp_path: Path) -> None:
    """As a compiler is that came without them: its preprocessor fails."""
    (tmp_path / "cc").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "cc").chmod(0o755)
    line = only_line(hook(str(tmp_path)))
    assert "cc does not find the C library's headers" in line


def test_without_python_h(tmp_path: Path) -> None:
    elsewhere = f"import sysconfig\nsysconfig.get_path = lambda name: {str(tmp_path)!r}\n"
    line = only_line(hook(os.environ["PATH"], program=elsewhere + HOOK))
    version = ".".join(map(str, sys.version_info[:2]))
    assert f"Python.h of {version} was not found in {tmp_path}." in line
    assert "apt-get install python3-dev;" in line


def test_a_file_of_settings_may_name_another_compiler(tmp_path: Path) -> None:
    done = hook(str(tmp_path), "{'setup-args': ['--native-file', 'musl.ini']}")
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a compiler")
def test_where_nothing_is_missing_it_answers_as_meson_python_does() -> None:
    done = hook(os.environ["PATH"], **headers_environment())
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[")


def test_an_old_python_is_named_before_anything_is_imported_that_it_lacks() -> None:
    old = "import sys, typing\nsys.version_info = (3, 9, 2)\ndel typing.ParamSpec\n" + HOOK
    done = hook(os.environ["PATH"], program=old)
    assert done.returncode == 1
    assert done.stderr == "cpythonplus needs Python 3.11 or later; this is 3.9.2\n"
