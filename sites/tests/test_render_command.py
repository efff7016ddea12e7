"""`cpythonplus-sites render`, `diagram` and `inventory`: where files go, and who gets secrets."""

import json
import stat
from pathlib import Path

import pytest

from cpythonplus_sites import keys
from cpythonplus_sites.commands.sites import main
from cpythonplus_sites.host_folder import HostFolder, write_key
from cpythonplus_sites.site_file import load

pytestmark = pytest.mark.any_version

SITES = """\
[network]
name = "acme"
tunnel = "10.254.0.0/24"

[sites.berlin]
lan = ["192.168.10.0/24"]
gateway = "192.168.10.1"
tunnel_address = "10.254.0.1"
endpoint = "vpn.example.org:51820"
public_key = "{berlin}"

[sites.paris]
lan = ["192.168.20.0/24"]
gateway = "192.168.20.1"
tunnel_address = "10.254.0.2"
public_key = "{paris}"
"""


@pytest.fixture
def host(tmp_path: Path) -> HostFolder:
    """The gateway of berlin, with its keys and the site file."""
    folder = HostFolder(tmp_path / "host")
    folder.create()
    private = keys.new_private_key()
    write_key(folder.private_key_path, private)
    write_key(folder.preshared_path, keys.new_preshared_secret())
    public = {"berlin": keys.public_key(private), "paris": keys.public_key(keys.new_private_key())}
    folder.sites_path.write_text(SITES.format(**public))
    return folder


def preshared_key(host: HostFolder) -> str | None:
    berlin, paris = load(host.sites_path).sites
    assert berlin.public_key is not None
    assert paris.public_key is not None
    return host.preshared_key(berlin.public_key, paris.public_key)


def run(host: HostFolder, action: str, *words: str) -> int:
    options = ["--file", str(host.sites_path)]
    return main([action, *options, "--host-dir", str(host.path), *words])


def modes(folder: Path) -> dict[str, int]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in found}


def test_files_lie_as_below_the_root(host: HostFolder, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(host, "render", "--out", str(out)) == 0
    text = (out / "etc/wireguard/wg-acme.conf").read_text()
    assert f"PrivateKey = {host.private_key()}\n" in text
    assert f"PresharedKey = {preshared_key(host)}\n" in text
    assert modes(out)["wg-acme.conf"] == 0o600
    assert {mode for name, mode in modes(out).items() if name != "wg-acme.conf"} == {0o644}
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    assert f"`{host.path}/acme.nft`" in (out / "README.md").read_text()


def test_rendering_again_changes_what_changed(host: HostFolder, tmp_path: Path) -> None:
    assert run(host, "render", "--out", str(tmp_path / "out")) == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("out/**/*") if path.is_file()}
    assert run(host, "render", "--out", str(tmp_path / "out")) == 0
    assert before
    assert before == {path: path.read_bytes() for path in before}


@pytest.mark.parametrize("words", [("--all",), ("--site", "paris")], ids=["all", "another"])
def test_other_sites_get_no_secrets(
    host: HostFolder, tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert run(host, "render", "--out", str(tmp_path / "out"), *words) == 0
    texts = [path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file()]
    secrets = [host.private_key(), preshared_key(host)]
    assert texts
    assert not [text for text in texts for secret in secrets if secret and secret in text]


def test_one_file_is_printed(host: HostFolder, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--stdout", "static-routes.md", "--lan-router", "192.168.10.254")
    assert run(host, "render", *words) == 0
    assert "dhcp-option=121,0.0.0.0/0,192.168.10.254" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--out", "x", "--site", "pari"), "no site 'pari' (did you mean paris?)"),
        (("--stdout", "wg-acme"), "did you mean wg-acme.conf?"),
        (("--stdout", "x", "--all"), "--all requires --out"),
        ((), "one of the arguments --out --stdout is required"),
        (("--out", "x", "--lan-router", "here"), "expected an IPv4 address, got 'here'"),
        (("--out", "/dev/null/x"), "/dev/null"),
    ],
)
def test_wrong_words_are_one_line(
    host: HostFolder,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    message: str,
) -> None:
    assert run(host, "render", *words) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_a_host_without_a_key_is_asked_which_site(
    host: HostFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    host.private_key_path.unlink()
    assert run(host, "render", "--out", "x") == 2
    assert "--site NAME or --all" in capsys.readouterr().err


def test_the_diagram_is_printed_or_written(
    host: HostFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(host, "diagram") == 0
    assert capsys.readouterr().out.startswith("flowchart LR\n")
    assert run(host, "diagram", "--format", "svg", "--output", str(tmp_path / "sites.svg")) == 0
    assert (tmp_path / "sites.svg").read_text("utf-8").startswith("<svg ")
    assert run(host, "diagram", "--format", "svg", "--output", str(tmp_path)) == 2


def test_the_inventory_answers_ansible(
    host: HostFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(host, "inventory", "--list") == 0
    found = json.loads(capsys.readouterr().out)
    assert run(host, "inventory", "--host", "paris") == 0
    assert json.loads(capsys.readouterr().out) == found["_meta"]["hostvars"]["paris"]
    assert run(host, "inventory", "--host", "rome") == 2
    assert run(host, "inventory", "--list", "--format", "json") == 2
