"""What is rendered is accepted by the programs that read it: wg-quick, systemd, nft, sshd, ssh."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from cpythonplus_sites.model import Network, Site
from cpythonplus_sites.rendering import Host, render, units
from sites.tests.strategies import gateways
from sites.tests.testbed import namespaces

pytestmark = pytest.mark.slow

PROGRAMS = (
    "nft",
    "ssh",
    "ssh-keygen",
    "sshd",
    "systemd-analyze",
    "systemd-sysusers",
    "unshare",
    "wg-quick",
)

SSHD_NEEDS = Path("/run/sshd")

EXECUTED = re.compile(r"^(Exec\w+=-?)([\w-]+)", re.MULTILINE)

SOME = settings(
    max_examples=12, suppress_health_check=list(HealthCheck), deadline=None, derandomize=True
)


def accepted(*argv: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        ("unshare", "--net", *argv),
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
        timeout=60,
    )
    assert done.returncode == 0, f"{argv}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def written(folder: Path, network: Network, site: Site, host: Host) -> None:
    for file in render(network, site, host):
        path = folder / file.path.relative_to("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text)
        path.chmod(file.mode)


def with_path(found: re.Match[str]) -> str:
    return found[1] + (namespaces.program(found[2]) or found[2])


def check_units(root: Path, network: Network, site: Site) -> None:
    """Instances are given as files of their own: verify takes a template by its file only so."""
    folder = root / "etc/systemd/system"
    names = set(units(network, site)) | {path.name for path in folder.glob("*-endpoints.service")}
    for name in names:
        template = folder / (name.partition("@")[0] + "@.service")
        if template.exists():
            (folder / name).write_text(template.read_text())
    for file in folder.glob("*.service"):
        # systemd 247 (Debian 11) starts a program by its name, but its verify asks for the path.
        file.write_text(EXECUTED.sub(with_path, file.read_text()))
    path = {"SYSTEMD_UNIT_PATH": f"{folder}:"}
    out = accepted("systemd-analyze", "verify", "--man=no", *sorted(names), env=path)
    complaints = [line for line in out.splitlines() if str(folder) in line]
    assert complaints == []


@pytest.fixture(scope="module", autouse=True)
def programs() -> Iterator[None]:
    """Skip where a program is missing; fail where CPYTHONPLUS_NEED_SITES says that it has to be."""
    missing = [name for name in PROGRAMS if namespaces.program(name) is None]
    if missing or subprocess.run(("unshare", "--net", "true"), check=False).returncode != 0:
        reason = f"there is no {', '.join(missing)}" if missing else "no network namespaces"
        if os.environ.get(namespaces.NEEDED):
            pytest.fail(reason)
        pytest.skip(reason)
    # sshd's own unit makes it; without that unit running it will not even read its file.
    made = not SSHD_NEEDS.exists()
    SSHD_NEEDS.mkdir(exist_ok=True)
    yield
    if made:
        SSHD_NEEDS.rmdir()


@SOME
@given(gateways())
def test_programs_accept_what_is_rendered(found: tuple[Network, Site, Host]) -> None:
    network, site, host = found
    # systemd-analyze looks whether the program is there.
    host = replace(host, program=(sys.executable, "-m", "cpythonplus_sites"))
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        written(root, network, site, host)
        for path in root.glob("etc/wireguard/*.conf"):
            stripped = accepted("wg-quick", "strip", str(path))
            assert f"PrivateKey = {host.private_key}" in stripped
            assert "Address" not in stripped
        for path in root.glob("etc/cpythonplus/sites/*.nft"):
            accepted("nft", "--check", "--file", str(path))
        for path in root.glob("etc/ssh/sshd_config.d/*.conf"):
            accepted("/usr/sbin/sshd", "-t", "-f", str(path))
        for path in root.glob("etc/ssh/cpythonplus-sites/*.config"):
            for link in network.links_of(site.name):
                if link.via == "ssh":
                    accepted("ssh", "-G", "-F", str(path), f"tunnel-{link.tunnel_number}")
        for path in root.glob("etc/ssh/cpythonplus-sites/*.keys"):
            check_keys(path)
        for path in root.glob("etc/sysusers.d/*.conf"):
            accepted("systemd-sysusers", "--root", str(root), path.name)
        check_units(root, network, site)


def check_keys(path: Path) -> None:
    """As many keys as there are lines that are no comments."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    if lines:
        assert len(accepted("ssh-keygen", "-l", "-f", str(path)).splitlines()) == len(lines)
