"""`cpythonplus-sites check`: the problems of a site file, and what looks like a mistake."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cpythonplus_sites.advice import advise, unresolved
from cpythonplus_sites.commands.options import add_common, path_of_file
from cpythonplus_sites.machine import Machine
from cpythonplus_sites.problems import Problem, SiteFileError
from cpythonplus_sites.rendering.ssh import calls
from cpythonplus_sites.site_file import SiteFile, open_file
from cpythonplus_sites.terminal import USAGE_STATUS, show

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from cpythonplus_sites.rendering.ssh import Call


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action's options."""
    add_common(parser, site=False)
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="format of the output (text)"
    )
    parser.add_argument("--resolve", action="store_true", help="look up the names of endpoints")


def run(options: argparse.Namespace) -> int:
    """Print problems, else warnings. If there are problems, the status is that of wrong input."""
    path = path_of_file(options)
    try:
        file = open_file(path)
    except SiteFileError as error:
        text = _json(path, error.problems) if options.format == "json" else _lines(error.lines())
        return show(text) or USAGE_STATUS
    found = advise(file.stanzas)
    if options.resolve:
        found += unresolved(file.stanzas, Machine().resolve_all)
    warnings = file.placed(found)
    if options.format == "json":
        return show(_json(path, (), warnings, calls(file.network)))
    return show(_text(file, warnings))


def _text(file: SiteFile, warnings: Sequence[Problem]) -> str:
    network = file.network
    sites, links = _count(len(network.sites), "site"), _count(len(network.links), "link")
    lines = [f"{file.path}:{one.line}: warning: {one.key}: {one.message}" for one in warnings]
    lines += [_told(call) for call in calls(network)]
    summary = f"{file.path}: {sites}, {links}, no problems"
    return _lines([*lines, f"{summary}, {_count(len(warnings), 'warning')}"])


def _told(call: Call) -> str:
    reason = {
        "endpoint": f"only {call.server} has an ssh_endpoint",
        "caller": "the link names the caller",
        "name": "both have an ssh_endpoint, and the first name in the alphabet calls",
    }[call.by]
    where = f"{call.server} at {call.endpoint} (tun{call.link.tunnel_number})"
    return f"ssh: {call.client} calls {where}: {reason}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _json(
    path: Path,
    problems: Sequence[Problem],
    warnings: Sequence[Problem] = (),
    ssh: Sequence[Call] = (),
) -> str:
    data = {
        "file": str(path),
        "problems": [one._asdict() for one in problems],
        "warnings": [one._asdict() for one in warnings],
        "ssh": [
            {
                "tunnel_number": each.link.tunnel_number,
                "client": each.client,
                "server": each.server,
                "endpoint": str(each.endpoint),
                "decided_by": each.by,
            }
            for each in ssh
        ],
    }
    return json.dumps(data, indent=2) + "\n"
