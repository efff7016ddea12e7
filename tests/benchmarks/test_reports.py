"""`python -m benchmarks reports`: what is a verdict, what the page shows; nothing is installed."""

import json
import subprocess
from pathlib import Path

import pytest

from benchmarks.command import main
from benchmarks.memory.reports import command, environments, judging
from benchmarks.memory.reports.catalogue import REPORTS, Report

FOLDER = Path(command.__file__).parent
REPORT = Report(
    "jar", "shop/jar#7", ("jar==1.2", "setuptools<70"), r"\bjar\._cookies", "jar|Cookie"
)


def test_each_report_has_a_program_with_pinned_packages() -> None:
    programs = {path.stem for path in (FOLDER / "programs").glob("*.py")} - {"__init__"}
    assert programs == {report.name for report in REPORTS}
    for report in REPORTS:
        assert all("==" in each or each == "setuptools<70" for each in report.packages)
    assert REPORT.url == "https://github.com/shop/jar/issues/7"


@pytest.mark.parametrize(
    ("sentences", "verdict"),
    [
        (["shop.jar._cookies (dict) has grown"], "exact"),
        (["something else", "shop.jar._cookies (dict) has grown"], "near"),
        (["9,000 x Cookie"], "near"),
        (["something else"], "nothing"),
        (["cpythonplus doctor: memray cannot begin"], "refused"),
        ([], "nothing"),
    ],
)
def test_verdicts(sentences: list[str], verdict: str) -> None:
    found = judging._verdict(REPORT, sentences)
    assert found["said"] == (sentences[0] if sentences else "-")
    assert found["verdict"] == verdict


def test_the_folder_of_an_environment_is_no_evidence() -> None:
    found = judging._verdict(REPORT, ["/build/jar-3.11/lib/python3.11/site-packages/other.py:3"])
    assert found["verdict"] == "nothing"
    assert found["said"] == "other.py:3"


@pytest.mark.parametrize(
    ("status", "out", "error", "found"),
    [
        (0, '"jar.py:7 x"', "", ("near", "jar.py:7 x")),
        (0, "", "", ("failed", "no output")),
        (1, "", "Traceback\nneed gdb or lldb\n", ("failed", "need gdb or lldb")),
    ],
)
def test_memray_is_attached(
    status: int, out: str, error: str, found: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def run(command: list[str]) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess(command, status, out, error)

    monkeypatch.setattr(judging, "_run", run)
    monkeypatch.setattr(judging, "_ENDS_S", 0.0)
    told = judging._attached(REPORT, Path("/env/bin/python"), 0.0, 4711)
    assert (told["verdict"], told["said"]) == found
    assert asked[0][:4] == ["/env/bin/python", "-m", "memray", "attach"]
    assert asked[0][-1] == "4711"
    if status == 0:
        assert asked[1][-2:] == ["--read", asked[0][-2]]


def result(name: str, verdict: str) -> dict[str, object]:
    tools = ("doctor", "native", *judging.TOOLS)
    return {
        "name": name,
        **{tool: {"said": f"{tool} | said", "verdict": verdict} for tool in tools},
    }


def test_the_page_has_a_row_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [report.name for report in REPORTS]
    rows = [result(names[0], "exact"), {"name": names[1], "not_rebuilt": "no wheel"}]
    older = result(names[2], "near")
    del older["attach"]  # of before there was this column
    results = {"python": "3.11.7", "reports": [*rows, older]}
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "3.11.json").write_text(json.dumps(results))
    page = tmp_path / "doctor.md"
    page.write_text(f"before\n{command.BEGIN}\nold\n{command.END}\nafter\n")
    monkeypatch.setattr(command, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(command, "PAGE", page)
    assert main(["reports", "--page"]) == 0
    text = page.read_text()
    assert "old" not in text
    assert REPORTS[1].report not in text
    assert f"[{REPORTS[0].report}]({REPORTS[0].url})" in text
    assert "doctor \\| said" in text
    assert "| 1, 1, 0 |" in text
    assert "2 reports are recorded, on CPython 3.11.7. Named exactly: doctor growth 1, " in text
    assert "| memray attach |" in text
    assert "| near | - |" in text


def test_what_cannot_be_installed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(report: Report, folder: Path) -> Path:
        raise environments.NotInstalledError("no wheel for it")

    monkeypatch.setattr(environments, "python_of", refuse)
    assert main(["reports", "--only", REPORTS[0].name, "--folder", str(tmp_path)]) == 1
    assert "not rebuilt: no wheel for it" in capsys.readouterr().out
    assert main(["reports", "--only", "unheard"]) == 2
    assert "there is no report 'unheard'" in capsys.readouterr().err
