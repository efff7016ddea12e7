"""The options, without a server."""

import dataclasses
from pathlib import Path

import pytest

from cpythonplus.prefork._options import OPTIONS, PATH, SERVERS, Options, read, refuse

pytestmark = pytest.mark.any_version


@pytest.fixture(autouse=True)
def no_options(monkeypatch: pytest.MonkeyPatch) -> None:
    for option in OPTIONS:
        monkeypatch.delenv(option.variable, raising=False)


def test_defaults() -> None:
    for server in ("gunicorn", "uWSGI", "celery", "RQ"):
        assert read(server) == Options()
    for server in ("multiprocessing", "os.fork"):
        assert read(server) == Options(gil=False, threads=False)


def test_the_environment_is_the_weakest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPYTHONPLUS_PREFORK_GIL", "off")
    monkeypatch.setenv("CPYTHONPLUS_PREFORK_MAX_PRIVATE_MEMORY", "1M")
    monkeypatch.setenv("CPYTHONPLUS_PREFORK_WARM_UP", " a, a:b,/c?d=e,")
    assert read("gunicorn", {"threads": "no", "max_private_memory": "2M"}) == Options(
        gil=False, threads=False, warm_up=("a", "a:b", "/c?d=e"), max_private_memory=2 << 20
    )


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("gil", "perhaps", "expected on or off, got 'perhaps'"),
        ("threads", 2, "expected on or off, got 2"),
        ("job_share", "lots", "expected a percentage like 25%, got 'lots'"),
        ("job_share", "9" * 400, "expected a percentage like 25%, got '999"),
        ("job_share", "95%", "expected 0% to 90%, got '95%'"),
        ("max_private_memory", "lots", "or 1.5G, got 'lots'"),
        ("max_private_memory", -1, "expected a size of 0 or more"),
        ("prepare_again", "-", "or 1.5G, got '-'"),
        ("metrics", "here", "[::1]:9100, got 'here'"),
        ("metrics", "http://x/metrics", "[::1]:9100, got 'http://x/metrics'"),
        ("metrics", "99999", "[::1]:9100, got '99999'"),
        ("warm_up", "index html", "or a callable, got 'index html'"),
        ("warm_up", ["a:"], "or a callable, got 'a:'"),
        ("warm_up", [":b"], "or a callable, got ':b'"),
        ("warm_up", [""], "or a callable, got ''"),
        ("warm_up", 3, "or a callable, got 3"),
        ("warm_up_requests", 3, "expected the name of a file, got 3"),
        ("warm_up_repeats", "often", "expected a number of 0 or more, got 'often'"),
        ("warm_up_repeats", -1, "expected a number of 0 or more, got -1"),
        ("warm_up_repeats", "9" * 5000, "expected a number of 0 or more, got "),
        ("warm_up_timeout", "soon", "expected a number of seconds, 0 or more, got 'soon'"),
        ("warm_up_timeout", "nan", "expected a number of seconds"),
        ("warm_up_timeout", "inf", "expected a number of seconds"),
        ("warm_up_timeout", -1, "expected a number of seconds"),
        ("warm_up_failure", "ignore", "expected stop or continue, got 'ignore'"),
        ("keep_mortal", "a.b", "expected package.module:callable, got 'a.b'"),
    ],
)
def test_a_wrong_value_is_one_line(
    name: str, value: object, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ValueError, match=name) as refused:
        Options(**{name: value})  # type: ignore[arg-type]
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)
    assert read("gunicorn", {name: value}) == Options()
    assert len(caplog.messages) == 1
    assert f"an option is ignored: {name}: " in caplog.text


def test_what_is_read_can_be_read_again() -> None:
    options = Options(warm_up=(list, "/"), metrics="9100", max_private_memory=300 << 20)
    assert dataclasses.replace(options) == options


ASKED = {
    "warm_up" + PATH: "/",
    "metrics" + PATH: "/metrics",
    "metrics": "9100",
    "prepare_again": "1M",
    "max_private_memory": "1M",
    "hard_private_memory": "1M",
    "max_worker_lifetime": 60,
    "max_worker_lifetime_jitter": 6,
    "request_timeout": 2,
    "stalls": 20,
    "refork": True,
    "refork_after": 1000,
    "fast_exit": False,
    "warm_up_requests": "requests.har",
    "warm_up_repeats": 3,
    "warm_up_timeout": 2.5,
    "warm_up_lifespan": False,
    "warm_up_failure": "stop",
}


@pytest.mark.parametrize(
    ("server", "name"), [(server, name) for server, names in SERVERS.items() for name in names]
)
def test_what_a_server_cannot_have_is_refused_in_one_line(
    server: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    given = {name.removesuffix(PATH): ASKED[name]}
    with pytest.raises(ValueError, match=f"{name} is not available with {server}: ") as refused:
        refuse(Options(**given), server)  # type: ignore[arg-type]
    assert "\n" not in str(refused.value)
    assert read(server, given) == read(server)
    assert len(caplog.messages) == 1


def test_an_option_that_is_not_refused_is_there() -> None:
    for server in SERVERS:
        options = Options(warm_up=("a:b",), keep_mortal="a:b")
        assert refuse(options, server) is options


def test_the_reference_has_the_table() -> None:
    page = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "prefork.md"
    assert table() in page.read_text()


def table() -> str:
    """Return the tables of the reference: the options, and who cannot have which."""
    lines = ["| option | default | what it does | environment | `cpythonplus serve` |"]
    lines.append("|---|---|---|---|---|")
    for each in OPTIONS:
        default = "on" if each.is_on else "off" if not each.shape else _shown(each.default)
        lines.append(
            f"| `{each.name}` | {default} | {each.text} | `{each.variable}` | `{each.word}"
            f"{' ' + each.shape if each.shape else ''}` |"
        )
    names = [each.name for each in OPTIONS]
    for name in ("warm_up" + PATH, "metrics" + PATH):
        names.insert(names.index(name.removesuffix(PATH)) + 1, name)
    lines += ["", f"| | {' | '.join(SERVERS)} |", "|---" * (len(SERVERS) + 1) + "|"]
    for name in names:
        marks = ["no" if _is_refused(name, server) else "yes" for server in SERVERS]
        lines.append(f"| {name} | {' | '.join(marks)} |")
    lines.append("")
    lines += [
        f"- {server}, {name}: {why}."
        for server, names in SERVERS.items()
        for name, why in names.items()
    ]
    return "\n".join(lines)


def _shown(default: object) -> str:
    return str(default) if isinstance(default, int) else str(default or "none")


def _is_refused(name: str, server: str) -> bool:
    return bool({name, name.removesuffix(PATH)} & set(SERVERS[server]))
