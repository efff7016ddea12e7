"""`cpythonplus-sites rotate`: what it refuses, and what it says comes next."""

from pathlib import Path

import pytest

from cpythonplus_sites import key_change
from cpythonplus_sites.agreement import digest
from cpythonplus_sites.commands import rotate as rotate_command
from cpythonplus_sites.commands import sites
from cpythonplus_sites.host_folder import HostFolder, write_key
from cpythonplus_sites.live import LiveTunnel
from cpythonplus_sites.site_file import load
from cpythonplus_sites.steps import Plan, Step
from cpythonplus_sites.terminal import UsageError
from sites.tests.simulated import Simulated

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

[sites.paris]
lan = ["192.168.20.0/24"]
gateway = "192.168.20.1"
tunnel_address = "10.254.0.2"
"""

NEXT_OF_PARIS = f'public_key = "{"B" * 42}A="\nnext_public_key = "{"C" * 42}A="'


class Berlin:
    """The gateway on which the commands are typed; applying and pinging are only remembered."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file = folder / "sites.toml"
        self.file.write_text(SITES)
        self.folder = HostFolder(folder / "host")
        self.words = ["--file", str(self.file), "--host-dir", str(self.folder.path)]
        assert sites.call(["keygen", *self.words, "--site", "berlin"]) == 0
        self.applied = 0
        self.status = 0
        self.devices = {"wg-acme"}
        self.used = frozenset({"wg-acme"})
        monkeypatch.setattr(rotate_command, "need_root", lambda _: None)
        monkeypatch.setattr(rotate_command, "PATIENCE_S", -1)
        monkeypatch.setattr(rotate_command, "devices", lambda _: self.devices)
        monkeypatch.setattr(rotate_command, "udp_ports", lambda _: {51820})
        monkeypatch.setattr(rotate_command, "_apply", lambda *_: self.apply())
        monkeypatch.setattr(key_change, "used_interfaces", lambda *_: {"paris": self.used})

    def apply(self) -> int:
        self.applied += 1
        return self.status

    def rotate(self, step: str, *words: str) -> int:
        return sites.call(["rotate", step, *self.words, "--yes", *words])

    @property
    def keys(self) -> tuple[str | None, str | None]:
        site = load(self.file).site("berlin")
        return site.public_key, site.next_public_key


@pytest.fixture
def berlin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Berlin:
    return Berlin(tmp_path, monkeypatch)


def test_all_steps(berlin: Berlin, capsys: pytest.CaptureFixture[str]) -> None:
    old, _ = berlin.keys
    capsys.readouterr()
    assert berlin.rotate("begin") == 0
    assert "berlin: give " in capsys.readouterr().out
    berlin.used = frozenset({"wg-acme-n"})
    assert berlin.rotate("switch") == 0
    assert capsys.readouterr().out.endswith("then here: rotate finish\n")
    berlin.used = frozenset({"wg-acme"})
    assert berlin.rotate("finish") == 0
    assert capsys.readouterr().out.startswith("berlin: done; give ")
    new, announced = berlin.keys
    assert announced is None
    assert new == berlin.folder.public_key() != old
    assert berlin.applied == 5


@pytest.mark.parametrize(
    "used", [{"wg-acme"}, {"wg-acme", "wg-acme-n"}, set()], ids=["first", "both", "none"]
)
def test_a_gateway_that_is_not_ready_is_waited_for(
    berlin: Berlin, capsys: pytest.CaptureFixture[str], used: set[str]
) -> None:
    berlin.rotate("begin")
    before = (berlin.keys, berlin.folder.public_key())
    berlin.used = frozenset(used)
    assert berlin.rotate("switch") == 1
    assert "\nparis: " in capsys.readouterr().out
    assert (berlin.keys, berlin.folder.public_key()) == before
    assert berlin.rotate("switch", "--force") == 0
    assert berlin.keys[0] == berlin.keys[1] == berlin.folder.public_key() != before[1]


def test_while_it_waits_it_applies_only_what_is_left(
    berlin: Berlin, monkeypatch: pytest.MonkeyPatch
) -> None:
    berlin.rotate("begin")
    found = iter([(), (), ("a route moves",), ()])
    used = iter([*[{"wg-acme"}] * 4, {"wg-acme-n"}])
    monkeypatch.setattr(rotate_command, "PATIENCE_S", 60)
    monkeypatch.setattr(
        rotate_command, "_planned", lambda _: Plan(tuple(map(Step, next(found))), (), ())
    )
    monkeypatch.setattr(key_change, "used_interfaces", lambda *_: {"paris": frozenset(next(used))})
    berlin.applied = 0
    assert berlin.rotate("switch") == 0
    assert berlin.applied == 3  # at first, for the route, and for the step itself


def test_what_apply_could_not_do_is_said(
    berlin: Berlin, capsys: pytest.CaptureFixture[str]
) -> None:
    berlin.status = 1
    assert berlin.rotate("begin") == 1
    assert "repeat: rotate begin" in capsys.readouterr().out
    berlin.status = 0
    assert berlin.rotate("begin") == 0


def test_a_second_port_in_use_is_told_before_anything_is_changed(
    berlin: Berlin, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = berlin.file.read_text()
    monkeypatch.setattr(rotate_command, "udp_ports", lambda _: {51820, 51821})
    monkeypatch.setattr(rotate_command, "tunnels", lambda _: {})
    with pytest.raises(UsageError, match="UDP port 51821, which wg-acme-n needs"):
        berlin.rotate("begin")
    assert (berlin.file.read_text(), berlin.folder.next_key(), berlin.applied) == (before, None, 0)
    assert berlin.rotate("abort") == berlin.rotate("finish") == 0
    assert berlin.applied == 0
    ours = LiveTunnel("wg-acme-n", None, 51821)
    monkeypatch.setattr(rotate_command, "tunnels", lambda _: {"wg-acme-n": ours})
    assert berlin.rotate("begin") == 0


def test_status_and_abort(berlin: Berlin, capsys: pytest.CaptureFixture[str]) -> None:
    for step, stage in (("status", "idle"), ("begin", "begun"), ("abort", "aborted")):
        assert berlin.rotate(step) == 0
        capsys.readouterr()
        assert berlin.rotate("status") == 0
        assert capsys.readouterr().out.startswith(f"berlin: {stage}\n")
    assert berlin.keys[1] is None
    with pytest.raises(UsageError, match="rotate finish"):
        berlin.rotate("begin")
    assert berlin.rotate("finish") == 0
    assert berlin.rotate("begin") == 0


def test_the_file_of_an_aborted_change_is_not_the_old_one_again(berlin: Berlin) -> None:
    """Else the gateways that have applied it would call the one that they have newer."""
    editions = {digest(berlin.file.read_text())}
    for count in (1, 2):
        assert berlin.rotate("begin") == berlin.rotate("abort") == 0
        assert berlin.rotate("abort") == berlin.rotate("finish") == 0
        editions.add(digest(berlin.file.read_text()))
        assert len(editions) == 1 + count
        assert load(berlin.file).revision == count
    assert berlin.keys == (berlin.folder.public_key(), None)


def test_refusals(berlin: Berlin) -> None:
    with pytest.raises(UsageError, match="does not belong to paris in"):
        berlin.rotate("begin", "--site", "paris")
    with pytest.raises(UsageError, match="rotate begin"):
        berlin.rotate("switch")
    with pytest.raises(UsageError, match="invalid choice"):
        berlin.rotate("start")
    berlin.rotate("begin")
    with pytest.raises(UsageError, match="is being changed; see cpythonplus-sites rotate"):
        sites.call(["keygen", *berlin.words, "--force"])
    with berlin.folder.locked(), pytest.raises(UsageError, match="another program"):
        berlin.rotate("abort")


def test_a_switch_that_was_interrupted_goes_on(berlin: Berlin) -> None:
    """Between its two writes the old key is gone: an abort would leave no key at all."""
    berlin.rotate("begin")
    key = berlin.folder.next_key()
    assert key is not None
    write_key(berlin.folder.private_key_path, key)
    with pytest.raises(UsageError, match="rotate switch"):
        berlin.rotate("abort")
    berlin.used = frozenset({"wg-acme-n"})
    assert berlin.rotate("switch") == 0
    public = berlin.folder.public_key()
    assert berlin.keys == (public, public)


def test_nothing_to_finish_is_one_line(berlin: Berlin, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert sites.call(["rotate", "finish", *berlin.words]) == 0  # nor is anything asked
    assert capsys.readouterr().out == "berlin: no key is being changed\n"
    assert berlin.applied == 0
    text = berlin.file.read_text().replace("[sites.paris]", f"[sites.paris]\n{NEXT_OF_PARIS}")
    berlin.file.write_text(text)
    berlin.devices.add("wg-acme-n")  # for the other site's change
    assert sites.call(["rotate", "finish", *berlin.words]) == 0
    assert capsys.readouterr().out == "berlin: no key is being changed\n"


def test_a_finish_that_was_interrupted_is_finished(
    berlin: Berlin, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the key was forgotten, or before the interface was removed."""
    berlin.rotate("begin")
    berlin.used = frozenset({"wg-acme-n"})
    berlin.rotate("switch")
    berlin.used = frozenset({"wg-acme"})
    key = berlin.folder.next_key()
    assert berlin.rotate("finish") == 0
    for left in ("key", "interface"):
        if left == "key":
            assert key is not None
            write_key(berlin.folder.next_key_path, key)
        berlin.devices = {"wg-acme", "wg-acme-n"} if left == "interface" else {"wg-acme"}
        berlin.applied = 0
        assert berlin.rotate("finish") == 0
        assert berlin.applied == 1
        assert "berlin: done; give" in capsys.readouterr().out
        assert not berlin.folder.next_key_path.exists()


def test_it_asks_with_what_it_means(
    berlin: Berlin, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Simulated(settings={"net/ipv4/ip_forward": "1"})
    monkeypatch.setattr(rotate_command, "Machine", lambda: box)
    sites.call(["keygen", *berlin.words, "--site", "berlin", "--secret"])
    before = (berlin.keys, berlin.folder.public_key())
    with pytest.raises(UsageError, match="--yes carries out the plan"):
        sites.call(["rotate", "begin", *berlin.words])
    out = capsys.readouterr().out
    assert "berlin: rotate begin makes a new key beside the one that is in use, and applies" in out
    assert "the file already differs from this gateway:\nberlin: " in out
    assert "bring up wg-acme" in out
    for answer in (False, True):
        monkeypatch.setattr(rotate_command, "agreed", lambda answer=answer: answer)
        assert sites.call(["rotate", "begin", *berlin.words]) == (0 if answer else 1)
        assert ((berlin.keys, berlin.folder.public_key()) == before) is not answer
        assert berlin.applied == int(answer)
