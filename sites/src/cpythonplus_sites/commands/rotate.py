"""`cpythonplus-sites rotate`: a new key for this gateway, without a lost packet."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from cpythonplus_sites import key_change
from cpythonplus_sites.commands import apply as apply_command
from cpythonplus_sites.commands import options as common
from cpythonplus_sites.commands.asking import add_yes, agreed
from cpythonplus_sites.commands.gateway import find, need_root
from cpythonplus_sites.commands.keys import change_keys, plain_errors
from cpythonplus_sites.commands.plan import text
from cpythonplus_sites.host_folder import HostFolder
from cpythonplus_sites.live import devices, look, tunnels, udp_ports
from cpythonplus_sites.machine import Machine
from cpythonplus_sites.planning import PORT_TAKEN, plan
from cpythonplus_sites.rotation import carries, second_port, stage_of
from cpythonplus_sites.site_file import load
from cpythonplus_sites.terminal import UsageError, show

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from pathlib import Path

    from cpythonplus_sites.model import Network, Site
    from cpythonplus_sites.steps import Plan

NOT_YET_STATUS = 1
PATIENCE_S = 15
"""A handshake without an answer is repeated every 5 s."""

STEPS = {
    "begin": key_change.begin,
    "switch": key_change.switch,
    "finish": key_change.finish,
    "abort": key_change.abort,
}
MEANS = {
    "begin": "makes a new key beside the one that is in use",
    "switch": "puts the new key in the place of the old one, which is deleted",
    "finish": "forgets how the change was made, and removes the second interface",
    "abort": "goes back to the old key",
}
"""The effect of each step, for the question before it."""

_THEN = "give {file} to the other gateways, run cpythonplus-sites apply on each, then here:"
AFTER = {
    "begun": f"{_THEN} rotate switch",
    "switched": f"{_THEN} rotate finish",
    "aborted": f"{_THEN} rotate finish",
    "idle": "no key is being changed",
}
DONE = {
    "begin": AFTER["begun"],
    "switch": AFTER["switched"],
    "abort": AFTER["aborted"],
    "finish": "done; give {file} to the other gateways, run cpythonplus-sites apply on each",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action's arguments to a parser."""
    parser.add_argument(
        "step", choices=(*STEPS, "status"), help="step to take, in this order; see the how-to"
    )
    common.add_common(parser)
    add = parser.add_argument
    add_yes(parser)
    add("--force", action="store_true", help="do not wait for the other gateways (loses packets)")
    add("--no-systemd", action="store_true", help="passed on to apply, which is part of each step")


def run(options: argparse.Namespace) -> int:
    """Carry out one step of the change."""
    with plain_errors():
        path = common.path_of_file(options)
        folder = HostFolder(options.host_dir)
        network, site = _this_site(path, folder, options.site)
        if options.step == "status":
            stage = key_change.stage_here(folder, site)
            return show(f"{site.name}: {stage}\n{AFTER[stage].format(file=path)}\n")
        need_root("rotate")
        if options.step == "begin":
            _check_port(Machine(), site)
        if options.step in ("finish", "abort") and _is_over(folder, network, site):
            return show(f"{site.name}: {AFTER['idle']}\n")
        if not options.yes and not _agreed(path, options, site):
            return NOT_YET_STATUS
        apply = partial(_apply, path, options)
        ready = options.force or _others_are_ready(options, folder, network, site, apply)
        if not ready:
            return NOT_YET_STATUS
        # After `abort` the file is as before `begin`: a new revision, so that it counts as newer.
        revision = network.revision + 1 if options.step == "abort" else None
        try:
            with folder.locked():
                set_keys = partial(change_keys, path, site.name, revision=revision)
                STEPS[options.step](folder, site, set_keys)
        except key_change.KeyChangeError as error:
            raise UsageError(str(error)) from None
        if apply() != 0:
            show(f"apply did not complete; repeat: rotate {options.step}\n")
            return NOT_YET_STATUS
        return show(f"{site.name}: {DONE[options.step].format(file=path)}\n")


def _check_port(machine: Machine, site: Site) -> None:
    """Raise UsageError if the second interface could not listen; nothing has begun yet."""
    port, interface = second_port(site), carries(site, spare=True)
    ours = tunnels(machine).get(interface)
    if port in udp_ports(machine) and (ours is None or ours.listen_port != port):
        raise UsageError(f"{PORT_TAKEN.format(port, interface)}; nothing was changed")


def _is_over(folder: HostFolder, network: Network, site: Site) -> bool:
    """Whether there is nothing to finish, not even after an interrupted `finish`.

    An interrupted `finish` may have left a key, or the second interface, which also exists while
    another site changes its key.
    """
    keys_left = any(path.exists() for path in (folder.next_key_path, folder.aborted_key_path))
    if keys_left or key_change.stage_here(folder, site) != "idle":
        return False
    others = (other for other in network.sites if other is not site)
    if any(stage_of(other) != "idle" for other in others):
        return True
    return carries(site, spare=True) not in devices(Machine())


def _agreed(path: Path, options: argparse.Namespace, site: Site) -> bool:
    """Show the step's effect and the file's other changes here, which it applies too, and ask."""
    show(f"{site.name}: rotate {options.step} {MEANS[options.step]}, and applies {path} here\n")
    found = _planned(options)
    if found.steps:
        show(f"the file already differs from this gateway:\n{text(site.name, found)}")
    return agreed()


def _this_site(path: Path, folder: HostFolder, name: str | None) -> tuple[Network, Site]:
    network = load(path)
    site = folder.site_in(network)
    if site is None or name not in (None, site.name):
        raise UsageError(
            f"the key in {folder.path} does not belong to {name or 'a site'} in {path}"
        )
    return network, site


def _others_are_ready(
    options: argparse.Namespace,
    folder: HostFolder,
    network: Network,
    site: Site,
    apply: Callable[[], int],
) -> bool:
    """Whether every linked gateway sends over the interface that the step leaves in use."""
    step = options.step
    stage = key_change.stage_here(folder, site)
    if (step, stage) not in {("switch", "begun"), ("finish", "switched"), ("finish", "aborted")}:
        return True
    deadline = time.monotonic() + PATIENCE_S
    if apply() != 0:
        return False
    while True:
        used = key_change.used_interfaces(Machine(), network, site)
        waiting = key_change.not_moved(used, site, spare=step == "switch")
        if not waiting:
            return True
        if time.monotonic() > deadline:
            break
        # Our own routes move only to sessions that are alive, so more than one apply may be needed.
        if _planned(options).steps and apply() != 0:
            return False
    for name, why in waiting.items():
        show(f"{name}: {why}; run cpythonplus-sites apply with the new file there\n")
    return False


def _planned(options: argparse.Namespace) -> Plan:
    gateway, systemd = find(options), not options.no_systemd
    return plan(gateway.wanted, look(Machine(), gateway.wanted, systemd=systemd))


def _apply(path: Path, options: argparse.Namespace) -> int:
    words = ["--yes", "--file", str(path), "--host-dir", str(options.host_dir)]
    return apply_command.main(words + ["--no-systemd"] * options.no_systemd)
