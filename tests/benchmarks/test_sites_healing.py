"""What breaks between sites is measured, and shown as it was found."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.sites.healing import __main__ as command
from benchmarks.sites.healing.measure import MEASURED
from benchmarks.sites.healing.results import SIDES, TITLES, Found, Results, table
from sites.tests.testbed import namespaces

ROOT = Path(__file__).parents[2]


def test_each_situation_is_measured_and_has_a_title() -> None:
    assert list(MEASURED) == list(TITLES)


def test_the_table_gives_least_and_largest() -> None:
    results: Results = {
        "hub-moves": {
            "wg-quick": [Found(lost=4800), Found(lost=4700)],
            "before": [Found(heal_s=219.04, lost=4380), None],
            "now": [Found(heal_s=16.0, lost=320), Found(heal_s=16.04, lost=322)],
        },
        "down": {"now": [Found(heal_s=0.5, lost=42, leaked=0)]},
        "ssh-site-removed": {"wg-quick": [None], "now": [Found(delivered=0), Found(delivered=3)]},
        "pmtu-said": {"wg-quick": [Found(said=False)], "now": [Found(said=True, said_s=2.8)]},
    }
    rows = [line.strip(" |").split(" | ")[1:] for line in table(results, SIDES).splitlines()[2:]]
    assert rows == [
        [
            "not within 240 s, 4,700 to 4,800 lost",
            "219.0 s, 4,380 lost",
            "16.0 s, 320 to 322 lost",
        ],
        ["-", "-", "0.5 s, 42 lost, 0 in clear text"],
        ["-", "-", "0 to 3 delivered"],
        ["not said", "-", "said in 2.8 s"],
    ]


def test_one_that_did_not_heal_once_did_not_heal() -> None:
    found = {"now": [Found(heal_s=3.0, lost=60), Found(lost=4800)]}
    assert "not within 240 s" in table({"udp-blocked": found}, ["now"])


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--only", "nothing"], "invalid choice: 'nothing'"),
        (["--rounds", "0"], "'0' is not a number from 1 on"),
        (["--output", "/nowhere/x.json"], "/nowhere"),
        (["--before", "/nowhere/python"], "/nowhere/python"),
    ],
)
def test_bad_options_are_refused_before_anything_is_measured(option: list[str], words: str) -> None:
    line = [sys.executable, "-m", "benchmarks.sites.healing", *option]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr.splitlines()[-1]


def test_the_page_shows_what_was_measured() -> None:
    recorded = json.loads((ROOT / "benchmarks/results/healing-sites.json").read_text())
    results = {
        name: {side: [each and Found(**each) for each in rounds] for side, rounds in row.items()}
        for name, row in recorded["situations"].items()
    }
    page = (ROOT / "docs/benchmarks/sites.md").read_text()
    assert table(results, SIDES) in page
    assert f"{recorded['machine']['kernel']}" in page


@pytest.mark.slow  # machines, daemons
def test_a_tunnel_that_is_taken_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    namespaces.require()
    kept = tmp_path / "found.json"
    words = ["--only", "down", "--output", str(kept)]
    monkeypatch.setattr(sys, "argv", ["healing", *words])
    assert command.main() == 0
    found = json.loads(kept.read_text())["situations"]["down"]
    assert found["now"][0]["leaked"] == 0
    assert found["wg-quick"][0]["leaked"] > 20
    assert capsys.readouterr().out.count("\n") == 3
