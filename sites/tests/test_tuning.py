"""Kernel parameters for streams over a long way."""

import argparse
from ipaddress import ip_network
from pathlib import Path

import pytest

from cpythonplus_sites import tuning
from cpythonplus_sites.commands import apply as apply_command
from cpythonplus_sites.commands import gateway as gateway_command
from cpythonplus_sites.commands import plan as plan_command
from cpythonplus_sites.commands import sites
from cpythonplus_sites.machine import Machine
from cpythonplus_sites.model import Network

pytestmark = pytest.mark.any_version


def test_linux_s_own_values_are_raised() -> None:
    assert tuning.values(tuning.LINUX) == tuning.SETTINGS
    assert tuning.values({}) == tuning.SETTINGS


def test_twice_changes_nothing() -> None:
    tabs = {name: value.replace(" ", "\t") + "\n" for name, value in tuning.SETTINGS.items()}
    assert tuning.values(tabs) == tuning.SETTINGS, "as /proc shows them"


def test_nothing_is_ever_lowered() -> None:
    current = {"net.ipv4.tcp_rmem": "8192 262144 67108864", "net.ipv4.tcp_wmem": "1 2 3"}
    raised = {"net.ipv4.tcp_rmem": "8192 262144 67108864", "net.ipv4.tcp_wmem": "1 2 33554432"}
    assert tuning.values(current) == raised
    assert "net.ipv4.tcp_rmem = 8192 262144 67108864\n" in tuning.text(raised)


@pytest.mark.parametrize("strange", ["", "1 2", "a b c", "1 2 3 4", "-1 2 3"])
def test_what_reads_strangely_is_replaced(strange: str) -> None:
    assert tuning.values({"net.ipv4.tcp_rmem": strange}) == tuning.SETTINGS


class Files(Machine):
    def read(self, path: Path) -> str | None:
        return "4096\t16384\t4194304\n" if path.name == "tcp_wmem" else None


def test_what_the_machine_has_is_read() -> None:
    assert tuning.current(Files()) == {"net.ipv4.tcp_wmem": "4096\t16384\t4194304\n"}


@pytest.mark.parametrize("words", [[], ["--tune"]])
def test_apply_and_plan_know_it(words: list[str]) -> None:
    network = Network("acme", ip_network("10.254.0.0/24"), "mesh", None, True, (), ())
    for module in (apply_command, plan_command):
        parser = argparse.ArgumentParser()
        module.add_arguments(parser)
        files = gateway_command.tuning_files(network, parser.parse_args(words), Files())
        assert [str(file.path) for file in files] == (
            ["/etc/sysctl.d/61-cpythonplus-acme-tune.conf"] if words else []
        )


def test_the_file_is_what_is_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert sites.main(["tune"]) == 0
    printed = capsys.readouterr().out
    lines = [line for line in printed.splitlines() if not line.startswith("#")]
    assert dict(line.split(" = ") for line in lines) == tuning.SETTINGS
