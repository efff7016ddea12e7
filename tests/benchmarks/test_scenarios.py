"""A scenario is a folder: whatever else names it is found in there."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import scenarios
from benchmarks.common.children import ROOT
from benchmarks.common.sides import ALL_SIDES

pytestmark = pytest.mark.any_version

SCENARIO_FOLDERS = [
    path.parent.relative_to(ROOT) for path in sorted(ROOT.glob("benchmarks/**/scenario.py"))
]
LISTING = """
from benchmarks import command, scenarios
command.parser()
for suite in scenarios.SUITES:
    print(*(case.name for case in scenarios.cases_of(suite)))
"""


@pytest.mark.parametrize("folder", SCENARIO_FOLDERS, ids=str)
def test_a_scenario_can_be_removed(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / "benchmarks", tmp_path / "benchmarks", ignore=shutil.ignore_patterns("results")
    )
    shutil.rmtree(tmp_path / folder)
    done = subprocess.run(
        [sys.executable, "-c", LISTING], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    known = {case.name for suite in scenarios.SUITES for case in scenarios.cases_of(suite)}
    assert set(done.stdout.split()) < known


def test_each_heading_has_one_home() -> None:
    homes = [name for scenario in scenarios.SCENARIOS for name in scenario.figures]
    assert len(set(homes)) == len(homes)


def test_each_table_has_one_home_and_each_case_a_table() -> None:
    cases = [case for suite in scenarios.SUITES for case in scenarios.cases_of(suite)]
    assert {case.scenario for case in cases} == set(scenarios.TABLES)


def test_each_side_is_a_known_one() -> None:
    cases = [case for suite in scenarios.SUITES for case in scenarios.cases_of(suite)]
    named = {side for case in cases for side in (*case.sides, case.base, case.own)}
    assert named | {target.side for target in scenarios.TARGETS} == set(ALL_SIDES)
