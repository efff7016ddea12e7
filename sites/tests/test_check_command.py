"""`cpythonplus-sites init` and `check`: what they print, and their statuses."""

import errno
import io
import json
import sys
from pathlib import Path

import pytest

from cpythonplus_sites.commands.sites import main
from cpythonplus_sites.machine import Machine
from sites.tests.site_texts import GOOD, SSH_KEY, with_changed

pytestmark = pytest.mark.any_version


CALL = "ssh: berlin calls rome at rome.example.org:22 (tun7)"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sites(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    status = main(arguments)
    captured = capsys.readouterr()
    return status, (captured.out + captured.err).splitlines()


@pytest.mark.parametrize("topology", ["mesh", "hub"])
def test_init_writes_a_file_that_is_good_once_it_is_filled_in(
    folder: Path, capsys: pytest.CaptureFixture[str], topology: str
) -> None:
    path = folder / "sites.toml"
    names = ("--name", "acme", "--sites", "berlin,paris,rome", "--tunnel", "10.9.0.0/29")
    status, lines = sites(capsys, "init", "--topology", topology, *names)
    assert (status, len(lines)) == (0, 1)
    assert path.stat().st_mode & 0o777 == 0o644
    status, lines = sites(capsys, "check")
    assert status == 2
    assert len(lines) == 7 + (topology == "mesh")
    assert sum("is empty: fill it in" in line for line in lines) == 7
    text = path.read_text()
    for number in (1, 2, 3):
        text = text.replace('[""]', f'["10.{number}.0.0/16"]', 1)
        text = text.replace('gateway = ""', f'gateway = "10.{number}.0.1"', 1)
    text = text.replace("# endpoint", "endpoint").replace(
        'endpoint = ""', 'endpoint = "a.org:1"', 1
    )
    path.write_text(text.replace('endpoint = ""', 'endpoint = "b.org:1"', 1))
    if topology == "hub":
        path.write_text(path.read_text().replace('endpoint = ""', '# endpoint = ""'))
    else:
        path.write_text(path.read_text().replace('endpoint = ""', 'endpoint = "c.org:1"'))
    status, lines = sites(capsys, "check")
    links = 3 if topology == "mesh" else 2
    assert (status, lines[-1]) == (
        0,
        f"sites.toml: 3 sites, {links} links, no problems, 3 warnings",
    )


def test_init_overwrites_only_when_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "sites.toml"
    path.write_text("mine")
    message = "cpythonplus-sites: sites.toml already exists; --force replaces it"
    assert sites(capsys, "init") == (2, [message])
    assert path.read_text() == "mine"
    assert sites(capsys, "init", "--force")[0] == 0
    assert path.read_text() != "mine"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["init", "--tunnel", "10.1.0.0"], '"10.1.0.0" has no prefix length, such as 10.1.0.0/24'),
        (
            ["init", "--tunnel", "10.1.0.0/31", "--sites", "a,b,c"],
            "not have enough addresses for 3",
        ),
        (["init", "--name", "Acme"], '"Acme" is not a name'),
        (["init", "--name", "acmecompanies"], "acmecompanies is longer than 12 characters"),
        (["init", "--sites", "a"], "expected two or more different names, got 'a'"),
        (["init", "--sites", "a,a"], "expected two or more different names, got 'a,a'"),
        (["init", "--file", "none/sites.toml"], "none/sites.toml: no such file or directory"),
        (["check", "--host-dir", "none"], "there is no sites.toml here and no none/sites.toml"),
    ],
)
def test_wrong_usage_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    status, lines = sites(capsys, *arguments)
    assert (status, len(lines)) == (2, 1)
    assert message in lines[0]


def test_the_hosts_file_that_may_not_be_looked_at(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As for everybody but root: the host folder is root's alone."""

    def guarded(path: Path, **_options: bool) -> object:
        if path.parent.name == "host":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))

    monkeypatch.setattr(Path, "stat", guarded)
    assert sites(capsys, "check", "--host-dir", "host") == (
        2,
        ["host/sites.toml: permission denied"],
    )


def test_what_standard_output_cannot_encode_is_escaped(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "sites.toml").write_text('[sites."m\u00fcnchen"]\n', "utf-8")
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, "ascii"))
    assert main(["check"]) == 2
    assert b"sites.toml:1: sites.m\\xfcnchen: " in printed.getvalue()


def test_problems_are_told_by_line_and_as_json(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "sites.toml"
    path.write_text(
        with_changed('"192.168.30.1"', '"192.168.31.1"').replace("mtu = 1380", "mtu = 9")
    )
    status, lines = sites(capsys, "check")
    assert status == 2
    assert lines == [
        "sites.toml:23: sites.rome.gateway: 192.168.31.1 is in none of this site's LANs",
        "sites.toml:32: links.mtu: expected a number from 576 to 9000 (bytes), got 9",
    ]
    status, lines = sites(capsys, "check", "--format", "json")
    data = json.loads("\n".join(lines))
    assert (status, data["warnings"]) == (2, [])
    assert [one["line"] for one in data["problems"]] == [23, 32]
    assert data["problems"][0]["key"] == "sites.rome.gateway"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "",
            "",
            "sites.toml:13: warning: sites.paris: no public_key yet; cpythonplus-sites keygen",
        ),
        ("", "", "26: warning: sites.rome.ssh_endpoint: no ssh_host_key: berlin, which calls it"),
        ("", "", "6: warning: sites.berlin: no ssh_public_key, and it calls rome over ssh"),
        ("", "", "25: warning: sites.rome.endpoint: 2001:db8::3 is no public address"),
        ("2001:db8::3", "2a00::3", "2a00::3 is IPv6: a gateway that has only IPv4 cannot call it"),
        ("192.168.30.", "192.168.1.", "192.168.1.0/24, the default of many home routers"),
        ("192.168.30.", "172.17.3.", "172.17.3.0/24 overlaps 172.17.0.0/16, the default of Docker"),
        ("192.168.30.", "8.8.8.", "8.8.8.0/24 are public addresses; are they yours?"),
        (
            'name = "acme"',
            'name = "acme"\nkeepalive = 0',
            "sites.paris: no endpoint, and a link with",
        ),
        ("mtu = 1380", "mtu = 1480", "1480 is too large for packets of 1500 bytes: 1440"),
        (
            'tunnel_address = "10.254.0.3"',
            'tunnel_address = "10.254.0.3"\nnext_public_key = "' + "B" * 42 + 'A="',
            "sites.rome.next_public_key: the key is being changed",
        ),
    ],
)
def test_warnings(
    folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str
) -> None:
    (folder / "sites.toml").write_text(GOOD.replace(old, new) if old else GOOD)
    status, lines = sites(capsys, "check")
    assert status == 0, lines
    assert any(message in line for line in lines), lines
    warned = sum(": warning: " in line for line in lines)
    assert lines[-1] == f"sites.toml: 3 sites, 3 links, no problems, {warned} warnings"


PAIR = """\
[network]
name = "acme"
tunnel = "10.254.0.0/24"
"""
SITE = """
[sites.{0}]
lan = ["10.{1}.0.0/24"]
gateway = "10.{1}.0.1"
tunnel_address = "10.254.0.{1}"
endpoint = "{2}"
"""


def test_pairs_that_cannot_connect_directly(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = {"both.example.org": ("8.8.8.8", "2a00::8"), "six.example.org": ("2a00::9",)}
    monkeypatch.setattr(Machine, "resolve", lambda _, host: addresses[host])
    text = PAIR + SITE.format("berlin", 1, "8.8.4.4:1") + SITE.format("paris", 2, "[2a00::2]:1")
    text += SITE.format("rome", 3, "both.example.org:1") + SITE.format(
        "oslo", 4, "six.example.org:1"
    )
    (folder / "sites.toml").write_text(text)
    words = "only IPv6, and that of berlin only IPv4: if neither gateway has both, they cannot"

    def told(*options: str) -> list[str]:
        _, lines = sites(capsys, "check", *options)
        return [line for line in lines if words in line]

    (paris,) = told()
    assert paris.startswith("sites.toml:15: warning: sites.paris.endpoint: ")
    assert paris.endswith('; a [[links]] table with via = "rome" lets that site relay')
    assert [line.split(": ")[2] for line in told("--resolve")] == [
        "sites.paris.endpoint",
        "sites.oslo.endpoint",
    ]


def test_no_warnings_where_there_is_nothing_to_say(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = GOOD.replace("[2001:db8::3]", "8.8.8.8")
    for number, last in enumerate(("10.254.0.2", "10.254.0.3")):
        line = f'tunnel_address = "{last}"\n'
        text = text.replace(line, f'{line}public_key = "{str(number) * 42}A="\n')
    line = 'ssh_endpoint = "rome.example.org:22"\n'
    text = text.replace(line, f'{line}ssh_host_key = "{SSH_KEY}"\n')
    line = 'endpoint = "vpn.example.org:51820"\n'
    text = text.replace(line, f'{line}ssh_public_key = "{SSH_KEY}"\n')
    (folder / "sites.toml").write_text(text)
    assert sites(capsys, "check") == (
        0,
        [
            f"{CALL}: only rome has an ssh_endpoint",
            "sites.toml: 3 sites, 3 links, no problems, 0 warnings",
        ],
    )


def test_who_calls_whom_over_ssh_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An endpoint of WireGuard, as berlin has one, does not make a server of ssh."""
    (folder / "sites.toml").write_text(GOOD)
    assert f"{CALL}: only rome has an ssh_endpoint" in sites(capsys, "check")[1]
    other = 'endpoint = "vpn.example.org:51820"\n'
    both = with_changed(other, f'{other}ssh_endpoint = "berlin.example.org:2222"\n')
    (folder / "sites.toml").write_text(both)
    rule = "both have an ssh_endpoint, and the first name in the alphabet calls"
    assert f"{CALL}: {rule}" in sites(capsys, "check")[1]
    own = 'ssh_endpoint = "rome.example.org:22"\n'
    (folder / "sites.toml").write_text(with_changed(own, "", both))
    text = "ssh: rome calls berlin at berlin.example.org:2222 (tun7): only berlin has an"
    assert any(line.startswith(text) for line in sites(capsys, "check")[1])
    data = json.loads("\n".join(sites(capsys, "check", "--format", "json")[1]))
    assert data["ssh"] == [
        {
            "tunnel_number": 7,
            "client": "rome",
            "server": "berlin",
            "endpoint": "berlin.example.org:2222",
            "decided_by": "endpoint",
        }
    ]
    (folder / "sites.toml").write_text(with_changed(own, ""))
    status, lines = sites(capsys, "check")
    assert status == 2
    assert "neither this site nor berlin has an ssh_endpoint, so neither end can call" in lines[0]


def test_names_are_resolved_only_when_told(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def resolve(machine: Machine, host: str) -> tuple[str, ...]:
        asked.append(host)
        return ("192.168.20.7",) if host == "vpn.example.org" else ()

    monkeypatch.setattr(Machine, "resolve", resolve)
    (folder / "sites.toml").write_text(GOOD)
    _, without = sites(capsys, "check")
    assert asked == []
    _, lines = sites(capsys, "check", "--resolve")
    assert sorted(asked) == ["rome.example.org", "vpn.example.org"]
    inside, lost = (line for line in lines[:-1] if line not in without)
    where = "vpn.example.org is 192.168.20.7, which is inside 192.168.20.0/24 of paris"
    assert inside == f"sites.toml:10: warning: sites.berlin.endpoint: {where}"
    assert lost.endswith("sites.rome.ssh_endpoint: the name rome.example.org does not resolve")


def test_other_actions_tell_problems_on_standard_error(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cpythonplus_sites.commands import check as check_command
    from cpythonplus_sites.site_file import load

    (folder / "sites.toml").write_text("[network]\n")
    path = folder / "sites.toml"
    monkeypatch.setattr(check_command, "run", lambda _: len(load(path).sites))
    assert main(["check"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        f"{path}:1: network: name is missing",
        f"{path}:1: network: tunnel is missing",
        f"{path}:1: sites: there is no [sites.NAME]",
    ]
