"""`cpythonplus-sites confirm`: keeps the file that `apply --confirm` applied, or goes back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cpythonplus_sites import confirming
from cpythonplus_sites.applying import ApplyRunningError, only_one
from cpythonplus_sites.commands import apply as apply_command
from cpythonplus_sites.commands import options as common
from cpythonplus_sites.commands.gateway import add_no_systemd, need_root, plain_errors
from cpythonplus_sites.host_folder import HostFolder
from cpythonplus_sites.machine import Machine
from cpythonplus_sites.terminal import complain, show

if TYPE_CHECKING:
    import argparse

COMMAND = "cpythonplus-sites confirm"
NOTHING_STATUS = 1
POLL_S = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action's arguments to a parser."""
    common.add_host_dir(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--go-back", action="store_true", help="apply the file from before at once, instead"
    )
    group.add_argument(
        "--wait", action="store_true", help="wait for the time limit, and go back when it is over"
    )
    add_no_systemd(parser)


def run(options: argparse.Namespace) -> int:
    """Confirm, or go back; returns 1 if nothing is on trial."""
    folder, machine = HostFolder(options.host_dir.absolute()), Machine()
    try:
        with plain_errors():
            need_root("confirm")
            if options.wait:
                return _wait(machine, folder, options)
            if options.go_back:
                return _go_back(folder, options)
            with only_one(folder.path):
                found = confirming.trial(machine, folder)
                if found is None:
                    return _nothing()
                confirming.end(machine, folder)
            return show("confirmed: what is applied stays\n")
    except ApplyRunningError as error:
        complain(COMMAND, str(error))
        return NOTHING_STATUS


def _nothing() -> int:
    show("nothing is applied on trial\n")
    return NOTHING_STATUS


def _wait(machine: Machine, folder: HostFolder, options: argparse.Namespace) -> int:
    """Wait for the end of the trial, as the process that `apply --confirm` started.

    A later trial has its own process.
    """
    mine = confirming.trial(machine, folder)
    while True:
        found = confirming.trial(machine, folder)
        if found is None or found != mine:
            return 0
        if not found.left_s(machine, folder):
            return _go_back(folder, options)
        time.sleep(min(POLL_S, found.left_s(machine, folder)))


def _go_back(folder: HostFolder, options: argparse.Namespace) -> int:
    if confirming.trial(Machine(), folder) is None:
        return _nothing()
    return apply_command.go_back(folder, no_systemd=options.no_systemd)
