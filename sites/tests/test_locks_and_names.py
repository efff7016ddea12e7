"""Two at once wait for each other; names are looked up at once, before, and not for ever."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from cpythonplus_sites.applying import ApplyRunningError, apply, only_one
from cpythonplus_sites.commands import apply as apply_command
from cpythonplus_sites.live import resolved
from cpythonplus_sites.machine import Machine
from cpythonplus_sites.model import Endpoint
from cpythonplus_sites.rendering import Host, render
from sites.tests import strategies
from sites.tests.simulated import Simulated
from sites.tests.test_apply_command import folder, machine, sites  # noqa: F401
from sites.tests.test_plan_and_apply import changed, gateway, wants

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from cpythonplus_sites.model import Network
    from cpythonplus_sites.probing import Ping, Probe

pytestmark = pytest.mark.any_version

EXAMPLE = strategies.example()

# ---- the lock -----------------------------------------------------------------------------------


def test_who_comes_second_waits_and_is_told_so(tmp_path: Path) -> None:
    first_is_in, let_go = Event(), Event()
    told: list[str] = []

    def first() -> None:
        with only_one(tmp_path) as had_to_wait:
            assert had_to_wait is False
            first_is_in.set()
            let_go.wait(60)

    thread = Thread(target=first)
    thread.start()
    first_is_in.wait(60)
    # It hears of it before it waits, and the first one goes on only then.

    def hear(line: str) -> None:
        told.append(line)
        let_go.set()

    with only_one(tmp_path, tell=hear) as had_to_wait:
        assert had_to_wait is True
    thread.join()
    assert told == ["another run is changing this gateway; waiting for up to 60 s"]


def test_the_wait_has_an_end(tmp_path: Path) -> None:
    with only_one(tmp_path):
        with (
            pytest.raises(ApplyRunningError, match=r"for 0 s \(.*apply.lock is locked\)"),
            only_one(tmp_path, patience_s=0),
        ):
            pass
        assert not (tmp_path / "apply.lock").read_text()
    with only_one(tmp_path):
        pass


@pytest.mark.parametrize("words", [("--yes",), ("--endpoints-only",)])
def test_a_run_that_waited_takes_the_file_of_then(
    machine: Simulated,  # noqa: F811
    folder: Path,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    """Else it would undo what the other one did."""
    sites(capsys, folder, "apply", "--yes")
    path = folder / "sites.toml"
    text = path.read_text()
    end = 'tunnel_address = "10.254.0.2"'
    before, after = (
        text.replace(end, f'{end}\nendpoint = "203.0.113.{number}:51820"') for number in (8, 9)
    )
    path.write_text(before)
    told: list[str] = []
    held = os.open(folder / "apply.lock", os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)

    def other_run_ends(line: str) -> None:
        told.append(line)
        if len(told) == 1:
            path.write_text(after)
            os.close(held)

    monkeypatch.setattr(apply_command, "_say", other_run_ends)
    assert sites(capsys, folder, "apply", *words)[0] == 0
    assert told[0] == "another run is changing this gateway; waiting for up to 60 s"
    (peer,) = machine.tunnels["wg-acme"].peers
    assert peer.endpoint == Endpoint("203.0.113.9", 51820)


def test_nothing_is_locked_while_a_person_is_asked(
    machine: Simulated,  # noqa: F811
    folder: Path,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def ask() -> bool:
        with only_one(folder, patience_s=0) as had_to_wait:
            asked.append(had_to_wait)
        if len(asked) == 1:  # somebody else brings the file into effect, and changes it
            assert sites(capsys, folder, "apply", "--yes")[0] == 0
            path = folder / "sites.toml"
            path.write_text(path.read_text().replace("10.2.0.", "10.3.0."))
        return True

    monkeypatch.setattr(apply_command, "agreed", ask)
    status, _, err = sites(capsys, folder, "apply")
    assert status == 0
    assert asked == [False, False]
    assert apply_command.CHANGED_MEANWHILE in err
    assert machine.tunnels


# ---- names --------------------------------------------------------------------------------------


class Resolver(Machine):
    """Each name waits until all the others are asked; those in `silent` never end."""

    def __init__(self, count: int, silent: Event) -> None:
        self.asked: list[str] = []
        self.all_asked = Event()
        self.count = count
        self.silent = silent

    def resolve(self, host: str) -> tuple[str, ...]:
        self.asked.append(host)
        if len(self.asked) == self.count:
            self.all_asked.set()
        if host.startswith("silent"):
            self.silent.wait(60)
        assert self.all_asked.wait(60), "one after the other"
        return (f"address of {host}",)


def test_names_are_looked_up_at_once_and_a_silent_one_is_given_up() -> None:
    end = Event()
    resolver = Resolver(3, end)
    try:
        found = resolver.resolve_all(["a.example", "silent.example", "b.example"], timeout_s=0.5)
    finally:
        end.set()
    assert sorted(resolver.asked) == ["a.example", "b.example", "silent.example"]
    assert found == {
        "a.example": ("address of a.example",),
        "b.example": ("address of b.example",),
        "silent.example": (),
    }


def test_a_look_up_that_goes_on_does_not_keep_the_process() -> None:
    code = (
        "import time\n"
        "from cpythonplus_sites.machine import Machine\n"
        "Machine.resolve = lambda self, host: time.sleep(600)\n"
        "print(Machine().resolve_all(['a.example'], timeout_s=0))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "{'a.example': ()}\n"


def test_an_address_is_no_name() -> None:
    addresses = ("203.0.113.1", "2001:db8::1")
    assert Machine().resolve_all(addresses, timeout_s=0) == {x: (x,) for x in addresses}


def test_a_name_that_is_known_is_not_looked_up_again() -> None:
    box = gateway()
    wanted = wants(EXAMPLE, "oslo")
    asked: list[str] = []
    box.resolve = asked.append  # type: ignore[assignment,method-assign]
    known = {"vpn.example.org": ("198.51.100.7",)}
    assert resolved(box, wanted, known) == known
    assert asked == []
    apply(box, wanted, addresses=known)
    assert asked == []
    (peer,) = box.tunnels["wg-acme"].peers
    assert peer.endpoint == Endpoint("198.51.100.7", 51820)


def test_one_apply_looks_a_name_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    box = gateway()
    asked: list[str] = []
    real: Callable[[str], tuple[str, ...]] = box.resolve

    def resolve(host: str) -> tuple[str, ...]:
        asked.append(host)
        return real(host)

    monkeypatch.setattr(box, "resolve", resolve)
    assert len(apply(box, wants(EXAMPLE, "oslo")).done) > 3
    assert asked == ["vpn.example.org"]


@pytest.mark.parametrize("words", [("--yes",), ("--endpoints-only",)])
def test_apply_looks_names_up_before_it_locks(
    machine: Simulated,  # noqa: F811
    folder: Path,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    path = folder / "sites.toml"
    end = 'tunnel_address = "10.254.0.2"'
    path.write_text(path.read_text().replace(end, f'{end}\nendpoint = "b.example.org:51820"'))
    machine.names["b.example.org"] = ("198.51.100.8",)
    free: list[str] = []
    real = machine.resolve

    def resolve(host: str) -> tuple[str, ...]:
        with only_one(folder, patience_s=0):
            free.append(host)
        return real(host)

    monkeypatch.setattr(machine, "resolve", resolve)
    assert sites(capsys, folder, "apply", *words)[0] == 0
    assert free == ["b.example.org"]


def test_the_closing_look_locks_nothing(
    machine: Simulated,  # noqa: F811
    folder: Path,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes seconds, in which the timer is to come in."""
    free: list[bool] = []
    real = machine.echo

    def echo(probes: Sequence[Probe], **more: float) -> list[Ping]:
        with only_one(folder, patience_s=0) as had_to_wait:
            free.append(had_to_wait)
        return real(probes, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(machine, "echo", echo)
    assert sites(capsys, folder, "apply", "--yes")[0] == 0
    assert free
    assert not any(free)


# ---- names when the interface comes up ----------------------------------------------------------

GETENT = """\
#!/bin/sh
# `ahosts NAME`; the first name ends only after the second one has begun.
case $2 in
    a.*) while [ ! -e "$0.second" ]; do sleep 0.05; done
        printf '%s STREAM a\\n' 192.168.20.1 192.168.20.1 2001:db8::7 198.51.100.7 ;;
    b.*) touch "$0.second"; exit 2 ;;
    c.*) echo 198.51.100.9 STREAM c ;;
esac
"""
IP = """\
#!/bin/sh
# `route get ADDRESS`; there is no way of IPv6.
case $3 in
    192.168.*) echo "$3 dev wg-acme src 10.254.0.1 uid 0" ;;
    *:*) exit 2 ;;
    *) echo "$3 via 203.0.113.1 dev wan0 src 203.0.113.11 uid 0" ;;
esac
"""
WG = """\
#!/bin/sh
echo "$*" >>"$0.called"
"""


def test_endpoints_are_set_at_once_when_the_interface_comes_up(tmp_path: Path) -> None:
    """And none that is behind the tunnel itself, as the far office's own DNS may answer."""
    network = changed(EXAMPLE, "paris", endpoint=Endpoint("a.example.org", 1))
    network = changed(network, "oslo", endpoint=Endpoint("b.example.org", 2))
    for found in (network, changed(network, "oslo", endpoint=Endpoint("c.example.org", 3))):
        (tmp_path / "getent.second").unlink(missing_ok=True)
        if found is not network:
            (tmp_path / "getent.second").touch()
        called = run_hook(tmp_path, found)
        paris, oslo = (found.site(name).public_key for name in ("paris", "oslo"))
        expected = [f"set wg-acme peer {paris} endpoint [2001:db8::7]:1"]
        if found is not network:
            expected.append(f"set wg-acme peer {oslo} endpoint 198.51.100.9:3")
        assert called == sorted(expected)


def run_hook(programs: Path, network: Network) -> list[str]:
    """Run the line for all names, as wg-quick does; with what `wg` was called."""
    files = render(network, network.site("berlin"), Host())
    (text,) = (file.text for file in files if file.path.name == "wg-acme.conf")
    (hook,) = (
        line.removeprefix("PostUp = ").replace("%i", "wg-acme")
        for line in text.splitlines()
        if line.startswith("PostUp") and " wg set " in line
    )
    for name, program in (("getent", GETENT), ("ip", IP), ("wg", WG)):
        (programs / name).write_text(program)
        (programs / name).chmod(0o755)
    called = programs / "wg.called"
    called.unlink(missing_ok=True)
    script = 'set -e -o pipefail; (eval "$1")'
    path = f"{programs}:{os.environ['PATH']}"
    subprocess.run(["bash", "-c", script, "bash", hook], check=True, env={"PATH": path}, timeout=60)
    return sorted(called.read_text().splitlines())
