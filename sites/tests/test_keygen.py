"""`cpythonplus-sites keygen`: makes what is missing, keeps what is there, shows no secret."""

import getpass
import io
import stat
import sys
from pathlib import Path

import pytest

from cpythonplus_sites import keys
from cpythonplus_sites.commands.sites import call
from cpythonplus_sites.host_folder import HostFolder, write_key
from cpythonplus_sites.secrets import SecretError
from cpythonplus_sites.site_file import load
from cpythonplus_sites.terminal import USAGE_STATUS, UsageError
from sites.tests.programs import needs_ssh_keygen

pytestmark = pytest.mark.any_version

SITES = """\
[network]
name = "acme"
tunnel = "10.254.0.0/24"

[sites.berlin]
lan = ["192.168.10.0/24"]
gateway = "192.168.10.1"
tunnel_address = "10.254.0.1"
endpoint = "203.0.113.1:51820"

[sites.paris]  # the office
lan = ["192.168.20.0/24"]
gateway = "192.168.20.1"
tunnel_address = "10.254.0.2"
"""


@pytest.fixture
def folder(tmp_path: Path) -> HostFolder:
    return HostFolder(tmp_path / "etc" / "sites")


def keygen(folder: HostFolder, *arguments: str) -> None:
    assert call(["keygen", "--host-dir", str(folder.path), *arguments]) == 0


def test_the_first_time(folder: HostFolder, capsys: pytest.CaptureFixture[str]) -> None:
    keygen(folder)
    private = folder.private_key()
    assert private is not None
    printed = capsys.readouterr()
    assert printed.out == f'public_key = "{keys.public_key(private)}"\n'
    assert private not in printed.err
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert [one.name for one in folder.path.iterdir()] == ["private.key"]


@needs_ssh_keygen
def test_what_is_there_stays(folder: HostFolder, capsys: pytest.CaptureFixture[str]) -> None:
    keygen(folder, "--ssh", "--secret")
    before = {one.name: one.read_bytes() for one in folder.path.iterdir()}
    first = capsys.readouterr().out
    keygen(folder, "--ssh", "--secret")
    assert capsys.readouterr().out == first
    assert {one.name: one.read_bytes() for one in folder.path.iterdir()} == before
    assert set(before) == {"private.key", "ssh_key", "ssh_key.pub", "preshared.secret"}
    modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in folder.path.iterdir()}
    assert modes == {**dict.fromkeys(before, 0o600), "ssh_key.pub": 0o644}


@needs_ssh_keygen
@pytest.mark.parametrize(
    ("options", "replaced"),
    [
        ([], {"private.key"}),
        (["--ssh"], {"ssh_key", "ssh_key.pub"}),
        (["--secret"], {"preshared.secret"}),
    ],
)
def test_force_replaces_what_is_named(
    folder: HostFolder, options: list[str], replaced: set[str]
) -> None:
    keygen(folder, "--ssh", "--secret")
    before = {one.name: one.read_bytes() for one in folder.path.iterdir()}
    keygen(folder, *options, "--force")
    after = {one.name: one.read_bytes() for one in folder.path.iterdir()}
    assert {name for name in before if before[name] != after[name]} == replaced


@needs_ssh_keygen
def test_no_output_has_a_secret(folder: HostFolder, capsys: pytest.CaptureFixture[str]) -> None:
    keygen(folder, "--ssh", "--secret")
    keygen(folder, "--ssh", "--secret", "--force")
    printed = "".join(capsys.readouterr())
    for name in ("private.key", "preshared.secret"):
        assert (folder.path / name).read_text().strip() not in printed
    assert "PRIVATE KEY" not in printed


@needs_ssh_keygen
def test_writes_the_public_keys_into_the_site_file(
    folder: HostFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sites.toml"
    path.write_text(SITES)
    keygen(folder, "--ssh", "--file", str(path), "--site", "paris")
    paris = load(path).site("paris")
    assert paris.public_key == folder.public_key()
    assert paris.ssh_public_key == folder.ssh_public_path.read_text().strip()
    assert "# the office" in path.read_text()
    assert "wrote public_key and ssh_public_key of sites.paris to" in capsys.readouterr().err


def test_without_wg_nothing_is_made(
    folder: HostFolder, without_programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match=r"requires wg, .* apt-get install wireguard-tools"):
        keygen(folder)
    assert list(folder.path.iterdir()) == []
    assert capsys.readouterr().out == ""


def test_what_only_reads_the_file_needs_no_program(
    folder: HostFolder, tmp_path: Path, without_programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sites.toml"
    path.write_text(SITES)
    words = ["--file", str(path), "--host-dir", str(folder.path)]
    for action in ("check", "diagram", "inventory"):
        assert call([action, *words]) == 0
    for more in (["--all"], ["--site", "paris"]):
        assert call(["render", "--out", str(tmp_path / "out"), *more, *words]) == 0
    # Whose site this is says a key, once there is one.
    folder.create()
    write_key(folder.private_key_path, keys.new_private_key())
    with pytest.raises(UsageError, match="requires wg, which is not on PATH"):
        call(["render", "--out", str(tmp_path / "out"), "--site", "paris", *words])
    assert call(["render", "--out", str(tmp_path / "out"), "--all", *words]) == 0
    capsys.readouterr()


def test_a_site_that_the_file_does_not_have(
    folder: HostFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sites.toml"
    path.write_text(SITES)
    words = ["--host-dir", str(folder.path), "--file", str(path), "--site", "oslo"]
    assert call(["keygen", *words]) == USAGE_STATUS
    assert "there is no [sites.oslo]" in capsys.readouterr().err
    assert path.read_text() == SITES


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (("sites.toml", "oslo"), "there is no [sites.oslo]"),
        (("sites.toml", ""), "there is no [sites.]"),
        (("sites.toml", "paris"), "the same key is used by berlin"),
        (("none.toml", "berlin"), "none.toml: no such file or directory"),
    ],
)
def test_no_key_is_replaced_by_one_that_cannot_be_told(
    folder: HostFolder,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    place: tuple[str, str],
    message: str,
) -> None:
    file, site = place
    (tmp_path / "sites.toml").write_text(SITES)
    keygen(folder, "--file", str(tmp_path / "sites.toml"), "--site", "berlin")
    before = folder.private_key()
    words = ["--file", str(tmp_path / file), "--site", site, "--force"]
    assert call(["keygen", "--host-dir", str(folder.path), *words]) == USAGE_STATUS
    assert message in capsys.readouterr().err
    assert folder.private_key() == before


class TestSecret:
    def test_is_carried_to_another_gateway(
        self,
        folder: HostFolder,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        keygen(folder, "--secret")
        capsys.readouterr()
        keygen(folder, "--show-secret")
        shown = capsys.readouterr()
        assert "keep this secret" in shown.err
        other = HostFolder(tmp_path / "other")
        monkeypatch.setattr(sys, "stdin", io.StringIO(shown.out))
        keygen(other, "--secret-from", "-")
        assert other.preshared_secret() == folder.preshared_secret()
        assert other.preshared_key("a", "b") == folder.preshared_key("b", "a")

    def test_is_asked_for_at_a_terminal_and_not_shown(
        self, folder: HostFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        secret, asked = keys.new_preshared_secret(), list[str]()
        monkeypatch.setattr(sys, "stdin", Terminal("what is echoed\n"))

        def ask(prompt: str) -> str:
            asked.append(prompt)
            return secret

        monkeypatch.setattr(getpass, "getpass", ask)
        keygen(folder, "--secret-from", "-")
        assert folder.preshared_secret() == secret
        assert len(asked) == 1

    def test_from_a_file(self, folder: HostFolder, tmp_path: Path) -> None:
        source = tmp_path / "carried"
        source.touch(mode=0o600)
        source.write_text(keys.new_preshared_secret())
        keygen(folder, "--secret-from", str(source))
        keygen(folder, "--secret-from", str(source))
        source.write_text(keys.new_preshared_secret())
        with pytest.raises(UsageError, match="has another secret; --force replaces it"):
            keygen(folder, "--secret-from", str(source))
        keygen(folder, "--secret-from", str(source), "--force")
        assert folder.preshared_secret() == source.read_text()

    def test_wrong_sources(
        self, folder: HostFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        odd = tmp_path / "odd"
        odd.touch(mode=0o600)
        odd.write_text("password1")
        with pytest.raises(UsageError, match="odd: not a key"):
            keygen(folder, "--secret-from", str(odd))
        odd.chmod(0o644)
        with pytest.raises(UsageError, match="chmod 600"):
            keygen(folder, "--secret-from", str(odd))
        with pytest.raises(UsageError, match="there is no such file"):
            keygen(folder, "--secret-from", str(tmp_path / "none"))
        monkeypatch.setattr(sys, "stdin", io.StringIO(""))
        with pytest.raises(UsageError, match="stdin: not a key"):
            keygen(folder, "--secret-from", "-")
        monkeypatch.setattr(sys, "stdin", None)
        with pytest.raises(UsageError, match="stdin: not a key"):
            keygen(folder, "--secret-from", "-")
        with pytest.raises(UsageError, match="keygen --secret creates it"):
            keygen(folder, "--show-secret")


class TestFolder:
    def test_one_that_others_can_change_is_refused(self, folder: HostFolder) -> None:
        folder.path.mkdir(parents=True)
        folder.path.chmod(0o770)
        with pytest.raises(UsageError, match=r"others can change .*; chmod 700"):
            keygen(folder)

    def test_a_key_that_others_can_read_is_refused(self, folder: HostFolder) -> None:
        keygen(folder)
        folder.private_key_path.chmod(0o644)
        with pytest.raises(UsageError, match=r"private.key can be read by others .mode 0644"):
            keygen(folder)

    def test_a_torn_key_is_refused_and_kept(self, folder: HostFolder) -> None:
        keygen(folder)
        folder.private_key_path.write_text("abc")
        with pytest.raises(UsageError, match=r"private.key: not a key"):
            keygen(folder)
        assert folder.private_key_path.read_text() == "abc"

    def test_a_file_in_its_place(self, folder: HostFolder) -> None:
        folder.path.parent.mkdir(parents=True)
        folder.path.touch()
        with pytest.raises(UsageError, match="is not a folder"):
            keygen(folder)
        folder.path.unlink()
        folder.path.parent.rmdir()
        folder.path.parent.touch()
        with pytest.raises(UsageError, match=r"exists|Not a directory"):
            keygen(folder)

    def test_one_program_at_a_time(self, folder: HostFolder) -> None:
        with folder.locked(), pytest.raises(SecretError, match="another program"), folder.locked():
            pass

    def test_what_a_killed_program_left_is_removed(self, folder: HostFolder) -> None:
        folder.create()
        left = folder.path / ".private.key.0123abcd.new"
        left.touch()
        keygen(folder)
        assert not left.exists()
