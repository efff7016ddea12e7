"""Reads the site file: all its problems at once, or the network with its defaults filled in.

`write_keys` writes single keys back, under a lock on the file itself: a separate lock file would
end up in the repository in which a shared file is kept.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cpythonplus_sites import toml, values
from cpythonplus_sites.checks import DEFAULT_PORT, Subject, check
from cpythonplus_sites.editing import NotEditableError, edited
from cpythonplus_sites.lines import Layout, scan
from cpythonplus_sites.model import Link, Network, Relay, Site
from cpythonplus_sites.problems import Problem, SiteFileError, dotted, printable
from cpythonplus_sites.schema import Wrong, read
from cpythonplus_sites.secrets import SecretError, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from cpythonplus_sites.editing import Value
    from cpythonplus_sites.problems import Keys
    from cpythonplus_sites.schema import FileStanzas, LinkStanza, SiteStanza

MOST_BYTES = 1 << 20

_AT = re.compile(
    r"(?P<what>.*) \(at (?:line (?P<line>\d+), column \d+|end of document)\)", re.DOTALL
)
_TWICE = re.compile(r"Cannot declare \((?P<keys>.*?),?\) twice")


@dataclass(frozen=True)
class SiteFile:
    """A file without problems: its stanzas, and the lines of its keys."""

    path: Path
    stanzas: FileStanzas
    layout: Layout

    @property
    def network(self) -> Network:
        """The network, defaults filled in."""
        return _network(Subject(self.stanzas))

    def placed(self, found: Iterable[Wrong]) -> tuple[Problem, ...]:
        """The findings about the file's keys with their lines, sorted."""
        return tuple(sorted(_placed(found, self.layout)))


def load(path: Path) -> Network:
    """The network that a file describes. Raises SiteFileError with all problems."""
    return open_file(path).network


def open_file(path: Path) -> SiteFile:
    """Read a file and keep the places of its keys. Raises SiteFileError as `load` does."""
    text = read_text(path)
    stanzas, layout, wrong = examine(path, text)
    if wrong:
        raise SiteFileError(path, _placed(wrong, layout))
    return SiteFile(path, stanzas, layout)


def examine(path: Path, text: str) -> tuple[FileStanzas, Layout, list[Wrong]]:
    """The stanzas, layout and problems of a text. Raises SiteFileError if it is not TOML."""
    data = parse(path, text)
    layout = scan(text)
    stanzas, wrong = read(data)
    return stanzas, layout, [*wrong, *check(stanzas, wrong)]


def _placed(wrong: Iterable[Wrong], layout: Layout) -> list[Problem]:
    return [Problem(layout.line(keys), dotted(keys), message) for keys, message in wrong]


def read_text(path: Path) -> str:
    """The text of the file with its line endings. Raises SiteFileError."""
    with _told(path):
        if not stat.S_ISREG(path.stat().st_mode):
            raise SiteFileError(path, [Problem(0, "", "is not a file")])
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        text = f"is longer than {MOST_BYTES >> 20} MiB, too long for a site file"
        raise SiteFileError(path, [Problem(0, "", text)])
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SiteFileError(path, [Problem(line, "", "is not UTF-8")]) from None


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn the system's errors about a file into a SiteFileError with one problem."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or "cannot be used").lower()
        raise SiteFileError(path, [Problem(0, "", reason)]) from None
    except SecretError as error:
        raise SiteFileError(path, [Problem(0, "", str(error))]) from None
    except ValueError:  # a null byte in the name
        raise SiteFileError(path, [Problem(0, "", "is not a file")]) from None


def parse(path: Path, text: str) -> dict[str, object]:
    """The data of a TOML text. Raises SiteFileError with its first syntax error."""
    try:
        data = toml.loads(text.removeprefix("\ufeff"))
    except RecursionError:
        raise SiteFileError(path, [Problem(0, "", "is nested too deeply")]) from None
    except ValueError as error:
        raise SiteFileError(path, [_syntax_problem(text, str(error))]) from None
    if not data:
        raise SiteFileError(path, [Problem(0, "", "is empty; cpythonplus-sites init creates one")])
    return data


def _syntax_problem(text: str, message: str) -> Problem:
    """The error of tomllib with its line; a key that is defined twice is named."""
    match = _AT.fullmatch(message)
    if match is None:  # a number of many thousand digits
        return Problem(0, "", f"is not TOML: {printable(message)}")
    line = int(match["line"] or text.count("\n") + 1)
    what = match["what"]
    twice = _TWICE.fullmatch(what)
    if twice is not None:
        table = ".".join(re.findall(r"'([^']*)'", twice["keys"]))
        return Problem(line, printable(table), "this table is defined twice")
    if "overwrite" in what:
        key = text.split("\n")[line - 1].partition("=")[0].strip()
        return Problem(line, "", f"{printable(key)} is defined twice")
    return Problem(line, "", f"is not TOML: {printable(what)}")


def write_keys(path: Path, changes: Mapping[str, Value], *, only_try: bool = False) -> None:
    """Set single keys, such as {"sites.paris.public_key": "..."}; None removes a key.

    Comments, order, line endings and the file's mode stay. The table of each key must exist.
    Two processes that do this at once wait for each other. A change that would add a problem to
    the file is refused; problems that it already has stay. On SiteFileError nothing is written.
    only_try: raise the same errors, and write nothing.
    """
    ways: dict[Keys, Value] = {tuple(key.split(".")): value for key, value in changes.items()}
    with _told(path), _locked(path) as mode:
        text = read_text(path)
        _, _, before = examine(path, text)
        try:
            new = edited(text, ways)
        except NotEditableError as error:
            wrong = [Wrong(error.keys, error.message)]
            raise SiteFileError(path, _placed(wrong, scan(text))) from None
        _, layout, after = examine(path, new)
        worse = [one for one in after if one not in before]
        if worse:
            raise SiteFileError(path, _placed(worse, layout))
        if new != text and not only_try:
            write_atomically(path, new, mode=mode)


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Hold the file's lock; yields its mode.

    The last holder may have replaced the file: the lock is taken again until it is on the current
    one.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            held = os.fstat(descriptor)
            if os.path.samestat(held, path.stat()):
                yield stat.S_IMODE(held.st_mode)
                return
        finally:
            os.close(descriptor)


def _network(subject: Subject) -> Network:
    """The network of stanzas in which nothing is missing."""
    network = subject.network
    assert network.name is not None and network.tunnel is not None  # noqa: S101, PT018
    links = [_link(subject, ends, stanza) for ends, stanza in subject.linked.items()]
    return Network(
        name=network.name,
        tunnel=network.tunnel,
        topology=network.topology,
        hub=network.hub,
        preshared=bool(network.preshared),
        preshared_of_names=network.preshared == values.OF_NAMES,
        revision=network.revision,
        sites=tuple(_site(network.name, *item) for item in subject.sites.items()),
        links=tuple(links),
        relays=tuple(Relay(ends, via) for ends, via in subject.relayed.items()),
    )


def _site(network: str, name: str, stanza: SiteStanza) -> Site:
    assert stanza.gateway is not None and stanza.tunnel_address is not None  # noqa: S101, PT018
    endpoint = stanza.endpoint
    return Site(
        name=name,
        lans=tuple(lan for lan in stanza.lan or () if lan is not None),
        gateway=stanza.gateway,
        tunnel_address=stanza.tunnel_address,
        interface=stanza.interface or f"wg-{network}",
        listen_port=stanza.listen_port or (endpoint.port if endpoint else DEFAULT_PORT),
        endpoint=endpoint,
        lan_interface=stanza.lan_interface,
        public_key=stanza.public_key,
        next_public_key=stanza.next_public_key,
        ssh_endpoint=stanza.ssh_endpoint,
        ssh_public_key=stanza.ssh_public_key,
        ssh_host_key=stanza.ssh_host_key,
        second_port=stanza.second_port,
        probe=stanza.probe,
        more_endpoints=tuple(x for x in stanza.more_endpoints or () if x is not None),
    )


def _link(subject: Subject, ends: tuple[str, str], stanza: LinkStanza) -> Link:
    network = subject.network
    return Link(
        ends=ends,
        via="ssh" if stanza.via == "ssh" else "wireguard",
        mtu=network.mtu if stanza.mtu is None else stanza.mtu,
        keepalive_s=network.keepalive if stanza.keepalive is None else stanza.keepalive,
        tunnel_number=stanza.tunnel_number,
        fallback=stanza.fallback,
        caller=stanza.caller,
    )
