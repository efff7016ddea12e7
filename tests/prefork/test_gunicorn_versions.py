"""Only tested versions of gunicorn are used."""

import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from tests.prefork.serving import APP, python_path
from tests.support import run_child

pytest.importorskip("gunicorn", reason="gunicorn is not installed")

from cpythonplus._base.errors import UnsupportedPlatform
from cpythonplus.prefork._gunicorn.versions import TESTED, require

pytestmark = pytest.mark.any_version
PYPROJECT = Path(__file__).resolve().parent.parent.parent / "pyproject.toml"
OTHER = f"{TESTED[-1].below[0]}.{TESTED[-1].below[1]}.1"
MESSAGE = f"gunicorn {OTHER} is installed; tested versions are 20.1 to below 21.0, "


@pytest.mark.parametrize(
    "version", ["20.1.0", "21.2.0", "22.0.0", "23.0.0", "24.0.0", "25.1.dev3", "27.9"]
)
def test_a_tested_version_has_its_row(version: str) -> None:
    major = int(version.partition(".")[0])
    kind = 20 if major < 21 else 22 if major < 24 else 24
    assert require(version).worker == f"ThreadWorker{kind}"


@pytest.mark.parametrize("version", ["20.0.4", "19.9.0", OTHER, "?"])
def test_another_version_is_refused(version: str) -> None:
    with pytest.raises(UnsupportedPlatform) as refused:
        require(version)
    assert str(refused.value).startswith(
        f"gunicorn {version} is installed; tested versions are 20.1 to "
    )


def test_the_requirements_have_the_bounds_of_the_table() -> None:
    assert all(one.below == other.first for one, other in pairwise(TESTED))
    first, below = TESTED[0].first, TESTED[-1].below
    assert below[1] == 0
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    bounds = f"gunicorn>={first[0]}.{first[1]},<{below[0]}"
    found = [each for extra in extras.values() for each in extra if each.startswith("gunicorn")]
    assert found
    assert set(found) == {bounds}


def test_serve_and_a_configuration_file_say_so_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "conf.py").write_text("from cpythonplus.prefork.gunicorn import *\n")
    program = f"""
        import sys, gunicorn
        gunicorn.__version__ = "{OTHER}"
        sys.argv = ["gunicorn", *{{words}}]
        {{call}}
    """
    calls = {
        "cpythonplus serve: ": "from cpythonplus._cli.main import main; sys.exit(main())",
        "cpythonplus.prefork.gunicorn: ": "from gunicorn.app.wsgiapp import run; run()",
    }
    words = (["serve", "app:app"], ["app:app", "-c", str(tmp_path / "conf.py")])
    for (begin, call), given, status in zip(calls.items(), words, (2, 1), strict=True):
        child = run_child(
            program.format(words=given, call=call),
            status=status,
            env={"PYTHONPATH": python_path(tmp_path)},
        )
        assert child.err.startswith(begin + MESSAGE), child.err
        assert child.err.count("\n") == 1
