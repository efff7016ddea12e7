"""Applications under serve: how they are judged and counted, and the page that tells what fails."""

import http.server
import json
import signal
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.servers import until
from tools import results_page
from tools.compat_serve import __main__ as tool
from tools.compat_serve import checks, environments, page, processes, sentry_sink
from tools.compat_serve.applications import APPLICATIONS, APPS
from tools.compat_serve.client import Client, Counts
from tools.compat_serve.environments import GROUPS, NoEnvironmentError
from tools.compat_serve.judging import Verdict, judge
from tools.compat_serve.report import describe, record, row
from tools.compat_serve.run import Phase, Run
from tools.compat_serve.scenario import PLUS, PRELOAD, STOCK, Phases, phase_names

pytestmark = pytest.mark.any_version

NAMES = ("start", "load", "stop")


def phases(*failed: str, reached: int = len(NAMES), why: str = "a complaint") -> Phases:
    counts = Counts(Counter({1: 5}))
    return {name: Phase((why,) if name in failed else (), counts, 0.1) for name in NAMES[:reached]}


def runner(sides: dict[str, list[Phases]]) -> Callable[[str], Phases]:
    """Each side says one after the other; what is left over, or missing, fails the test."""
    left = {side: iter(found) for side, found in sides.items()}
    return lambda side: next(left[side])


def verdict(**sides: list[Phases]) -> Verdict:
    return judge(
        runner({STOCK: sides["stock"], PLUS: sides["plus"], PRELOAD: sides["preload"]}), NAMES
    )


# ---- judging ------------------------------------------------------------------------------------


def test_what_passes_is_run_once() -> None:
    found = verdict(stock=[phases()], plus=[phases()], preload=[])
    assert found.passed == NAMES
    assert describe(found) == ["3 of 3 (stock 15 answers, plus 15 answers)"]


def test_what_fails_only_with_us_fails_each_time() -> None:
    found = verdict(stock=[phases()] * 3, plus=[phases("load")] * 3, preload=[phases()] * 3)
    assert found.ours == {"load": ["a complaint"]}
    assert found.passed == ("start", "stop")
    assert describe(found)[1:] == ["FAILS ONLY WITH US: load: a complaint"]


@pytest.mark.parametrize(
    ("stock", "plus"),
    [
        ([phases()] * 2, [phases("load"), phases()]),
        ([phases(), phases("load")], [phases("load")] * 2),
        ([phases()] * 3, [phases("load"), phases("load"), phases()]),
    ],
    ids=["passed again", "failed on stock later", "passed at last"],
)
def test_what_differs_between_runs_is_unsteady(stock: list[Phases], plus: list[Phases]) -> None:
    found = verdict(stock=stock, plus=plus, preload=[phases()] * (len(plus) - 1))
    assert (found.ours, found.unsteady) == ({}, {"load": ["a complaint"]})


def test_what_preload_does_too_is_not_ours() -> None:
    found = verdict(stock=[phases()], plus=[phases("stop")], preload=[phases("stop")])
    assert (found.ours, found.preload) == ({}, {"stop": ["a complaint"]})


def test_what_preload_does_at_another_time_is_not_ours() -> None:
    found = verdict(
        stock=[phases()] * 2, plus=[phases("stop")] * 2, preload=[phases(), phases("stop")]
    )
    assert (found.ours, found.preload) == ({}, {"stop": ["a complaint"]})


def test_what_stock_does_too_is_not_ours() -> None:
    found = verdict(stock=[phases("load")], plus=[phases("load")], preload=[])
    assert found.ours == {}
    assert found.theirs == {"load": ["a complaint", "under serve: a complaint"]}


def test_another_complaint_than_stock_has_is_ours() -> None:
    stock = [phases("load", why="errors of the client: 1 x OSError")] * 3
    other = [phases("load", why="errors of the client: 20 x EOFError")]
    assert verdict(stock=stock[:1], plus=other, preload=[]).ours == {}
    worse = [phases("load", why="exit status 1")] * 3
    found = verdict(stock=stock, plus=worse, preload=[phases()] * 3)
    assert (found.ours, found.theirs) == ({"load": ["exit status 1"]}, {})


def test_what_is_not_reached_has_failed() -> None:
    short = phases("load", reached=2)
    found = verdict(stock=[phases()] * 3, plus=[short] * 3, preload=[phases()] * 3)
    assert found.ours == {"load": ["a complaint"], "stop": ["not reached"]}


# ---- counting -----------------------------------------------------------------------------------


class Service(http.server.BaseHTTPRequestHandler):
    """Answers with what its server has next: a status and a body; then with worker 7's."""

    def do_GET(self) -> None:
        server = cast("Answers", self.server)
        status, body = server.answers.pop(0) if server.answers else (200, '{"pid": 7}')
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # their name
        pass


class Answers(http.server.ThreadingHTTPServer):
    answers: list[tuple[int, str]]


@pytest.fixture
def service() -> Iterator[Answers]:
    with Answers(("127.0.0.1", 0), Service) as server:
        server.answers = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_client_counts_by_worker_and_by_error(service: Answers) -> None:
    service.answers += [(500, ""), (200, '{"pid": 8, "right": false}'), (200, "no JSON")]
    with Client(service.server_port) as client:
        until("an answer", lambda: 7 in client.answered())
        client.end()
        counts = client.take()
    assert counts.errors == {"status 500": 1, "wrong answer": 1, "JSONDecodeError": 1}
    assert counts.pids.keys() == {7}
    assert client.total.ok == counts.ok
    client.forget()
    assert client.answered() == set()


def test_a_port_without_a_server_is_refused(tmp_path: Path) -> None:
    with socket.socket() as taken:  # so that no other test's server gets the port meanwhile
        taken.bind(("127.0.0.1", 0))
        for address in (taken.getsockname()[1], tmp_path / "socket"):
            with Client(address) as client:
                until("a refusal", lambda: client.take().refused)
            assert client.total.errors == {}


def run_with(answers: dict[int, int], *, killed: int = 0, failed: int = 0) -> Run:
    total = Counts(Counter(answers), errors=Counter({"status 500": failed}))
    return cast("Run", SimpleNamespace(client=SimpleNamespace(total=total), killed={killed}))


def test_numbers_are_compared_by_worker() -> None:
    run = run_with({1: 5, 2: 5})
    assert checks.unequal(run, "rows", Counter({1: 5, 2: 5})) == []
    assert checks.unequal(run, "rows", Counter({1: 5, 2: 4})) == [
        "1 workers, e.g. 4 rows for 5 answers"
    ]
    assert checks.unequal(run, "rows", Counter({1: 5, 2: 6})) != []
    assert checks.unequal(run, "rows", Counter()) == ["no rows at all"]


def test_what_failed_may_have_counted_and_what_was_killed_may_not() -> None:
    found = Counter({1: 6, 2: 4})
    assert (
        checks.unequal(run_with({1: 5, 2: 5}, killed=2, failed=1), "rows", found, lost=True) == []
    )
    assert checks.unequal(run_with({1: 5, 2: 5}, failed=1), "rows", found, lost=True) != []
    assert checks.unequal(run_with({1: 5, 2: 5}, killed=2), "rows", found, lost=True) != []


def test_an_envelope_is_read() -> None:
    event = {"message": "visited", "tags": {"pid": "7"}}
    lines = [{"event_id": "0"}, {"type": "event"}, event, {"type": "session"}, {"sid": "1"}]
    envelope = "\n".join(map(json.dumps, lines)).encode() + b"\n"
    assert sentry_sink.events(envelope) == [event]


# ---- the tool -----------------------------------------------------------------------------------


def test_a_wrong_name_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main(["grpc", "cobol"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "no application 'cobol'; there are flask-sqlalchemy, " in err


@pytest.mark.parametrize(("plus", "status"), [(phases("load"), 1), (phases(), 0)])
def test_what_fails_only_with_us_ends_with_status_1(
    monkeypatch: pytest.MonkeyPatch, plus: Phases, status: int
) -> None:
    found = verdict(stock=[phases()] * 3, plus=[plus] * 3, preload=[phases()] * 3)
    monkeypatch.setattr(tool, "examine", lambda *_: found)
    monkeypatch.setattr(processes, "adopt_orphans", lambda: None)
    monkeypatch.setattr(environments, "ready", lambda _: Path("nowhere"))
    monkeypatch.setattr(environments, "versions", lambda *_: {})
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert tool.main(["grpc"]) == status


def test_nothing_that_ran_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(group: str) -> Path:
        raise NoEnvironmentError(f"no wheel of {group}")

    monkeypatch.setattr(processes, "adopt_orphans", lambda: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(environments, "ready", absent)
    assert tool.main(["grpc"]) == 1
    assert "grpc: no wheel of grpc\n" in capsys.readouterr().out


def test_every_application_is_there_and_small() -> None:
    files = {application.file for application in APPLICATIONS.values()}
    assert files == {path.name for path in APPS.glob("*.py")}
    assert all(len((APPS / name).read_text("utf-8").splitlines()) < 60 for name in files)
    assert {application.group for application in APPLICATIONS.values()} == GROUPS.keys()


def test_recording_keeps_the_other_applications(tmp_path: Path) -> None:
    found = verdict(stock=[phases("load")], plus=[phases()], preload=[])
    record({"a": row(found, {"gunicorn": "1"})}, tmp_path)
    record({"b": {"absent": "no wheel of b"}}, tmp_path)
    (written,) = tmp_path.iterdir()
    kept = json.loads(written.read_text("utf-8"))["applications"]
    assert kept["a"]["theirs"] == {"load": ["a complaint"]}
    assert kept["a"]["counts"]["plus"]["stop"]["ok"] == 5
    assert kept["b"] == {"absent": "no wheel of b"}


# ---- the page -----------------------------------------------------------------------------------


def test_the_page_is_up_to_date() -> None:
    assert page.main(["--check"]) == 0, "run: make docs"


def test_the_page_describes_each_phase() -> None:
    text = page.PAGE.read_text("utf-8")
    told = [
        line.split(" | ")[0].strip("| ")
        for line in text.partition(results_page.marks("serve")[0])[0].splitlines()
    ]
    phases = {name for application in APPLICATIONS.values() for name in phase_names(application)}
    assert phases <= set(told)


def result(**applications: object) -> page.Result:
    """All applications passed but those that are given."""
    good = row(verdict(stock=[phases()], plus=[phases()], preload=[]), {"gunicorn": "1"})
    return {"python": "3.13.0", "applications": dict.fromkeys(APPLICATIONS, good) | applications}


def test_the_page_tells_what_fails() -> None:
    found = verdict(stock=[phases("load")], plus=[phases("stop")], preload=[phases("stop")])
    text = page.rendered([result(grpc=row(found, {}), data={"absent": "no wheel of pandas"})])
    assert "| gRPC, Flask (`grpc`) | 3: 0 (and 2) |" in text
    assert "| NumPy, pandas, pyarrow (`data`) | no wheel of pandas |" in text
    assert "| `grpc` | stop | all | a complaint |" in text
    assert "What fails only with us" not in text


def test_a_failure_only_with_us_needs_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verdict(stock=[phases()] * 3, plus=[phases("load")] * 3, preload=[phases()] * 3)
    results = [result(grpc=row(found, {}))]
    with pytest.raises(results_page.PageError, match="grpc, load: fails for no known reason"):
        page.check(results)
    monkeypatch.setitem(page.REASONS, ("grpc", "load"), "A reason.")
    page.check(results)
    assert "| `grpc` | load | all | a complaint. A reason. |" in page.rendered(results)


def test_an_application_that_did_not_run_is_told() -> None:
    with pytest.raises(results_page.PageError, match=r"3\.13\.0: not recorded: apscheduler, "):
        page.check([{"python": "3.13.0", "applications": {}}])
    with pytest.raises(results_page.PageError, match="not there any more: cobol"):
        page.check([result(cobol={"absent": "no wheel"})])
