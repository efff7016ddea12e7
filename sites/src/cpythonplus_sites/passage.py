"""Whether this gateway lets packets through between its LAN and the tunnels, apart from our part.

The checks cover the kernel's settings, the firewall's chains for forwarded packets (Docker and ufw
set their policy to DROP), chains that rewrite the source, and the rules of policy routing. The
gateway's own pings do not show this, as its own packets are not forwarded. So the rules are read:
for a new TCP connection from a host in the LAN, does a chain certainly drop it, or hide its source?
A match that is not understood may let it through; then nothing is reported.

Nothing is changed: `iptables-legacy` runs only if its tables are in use, as it would load them.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cpythonplus_sites.live import PROC_SYS
from cpythonplus_sites.machine import NOT_FOUND_STATUS, TIMED_OUT_STATUS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from cpythonplus_sites.live import Device
    from cpythonplus_sites.machine import Machine, Output
    from cpythonplus_sites.model import Address, Site, Subnet

FORWARDING = {4: "net/ipv4/ip_forward", 6: "net/ipv6/conf/all/forwarding"}
LEGACY_TABLES = {
    "iptables": Path("/proc/net/ip_tables_names"),
    "ip6tables": Path("/proc/net/ip6_tables_names"),
}
HOOKS = ("prerouting", "forward", "postrouting")
IPTABLES = ("filter", "raw", "mangle", "nat")
"""The names of iptables' tables in nftables; their base chains have capital letters."""

MOST_JUMPS = 16
MOST_RULES = 3
IPV4 = 4
_USUAL_RULE = re.compile(r"from all lookup (local|main|default|255|254|253)$")

NOT_FORWARDING = "{0} is 0, so nothing is forwarded; cpythonplus-sites apply sets it"
NO_ADDRESS = (
    "no interface has {0}, the gateway's address in the LAN in the file: wrong file, or the LAN is "
    "not connected"
)
LAN_DOWN = "{0}, the interface of the LAN, is down"
NO_CARRIER = "{0}, the interface of the LAN, has no carrier: no cable, or nothing is on at its end"
DROPPED = "{0} drops what is forwarded {1}: {2}"
MASQUERADED = (
    "{0} rewrites the source of what goes from {1} to {2} (masquerade or snat): hosts of the other"
    " site see this gateway alone, whoever calls; let it leave out {2}"
)
DIVERTED = "packets from the LAN to {0} leave through {1}, not {2}{3}"
NO_ROUTE = "packets from the LAN to {0} find no route ({1}){2}"


@dataclass(frozen=True)
class Packet:
    """The first packet of a TCP connection that is to be forwarded."""

    iif: str
    oif: str
    source: Address
    target: Address


def lan_device(devices: Mapping[str, Device], site: Site) -> str | None:
    """The interface that has the gateway's address in the LAN."""
    return next(
        (
            device.name
            for device in devices.values()
            if site.gateway in {each.ip for each in device.addresses}
        ),
        None,
    )


def host_in_lan(site: Site) -> Address:
    """An address of the LAN that is not the gateway's."""
    lan = next(lan for lan in site.lans if _is_in(site.gateway, lan))
    first = lan.network_address + 1
    other = first if first != site.gateway else first + 1
    return other if _is_in(other, lan) else site.gateway


class Passage:
    """The forwarding of one gateway with these `devices`; each program's output is read once."""

    def __init__(self, machine: Machine, site: Site, devices: Mapping[str, Device]) -> None:
        self._machine = machine
        self._site = site
        self._devices = devices
        self._outputs: dict[tuple[str, ...], Output] = {}

    def faults(self, far: Site, device: str, others: Collection[str] = ()) -> Iterator[str]:
        """The faults that keep packets of the LAN from the way to another site, a line each.

        device: the one through which they should leave; others: devices that they may use for a
        while.
        """
        site = self._site
        if site.gateway.version != far.gateway.version:
            return
        setting = FORWARDING[site.gateway.version]
        if self._read(PROC_SYS / setting).strip() == "0":
            yield NOT_FORWARDING.format(setting.replace("/", "."))
            return
        lan = lan_device(self._devices, site)
        if lan is None:
            yield NO_ADDRESS.format(site.gateway)
            return
        there = self._devices[lan]
        if not (there.up and there.running):
            yield (NO_CARRIER if there.up else LAN_DOWN).format(lan)
            return
        yield from self._misrouted(far, lan, device, others)
        host = host_in_lan(site)
        out, back = Packet(lan, device, host, far.gateway), Packet(device, lan, far.gateway, host)
        for packet in (out, back):
            yield from self.dropped(packet)
        for chain, _ in self._deciding(out, "nat", ("postrouting",), "rewrite"):
            yield MASQUERADED.format(chain, lan, device)

    def dropped(self, packet: Packet) -> Iterator[str]:
        """The chains that drop packets which this gateway forwards between sites, a line each."""
        way = f"from {packet.iif} to {packet.oif}"
        for chain, names in self._dropping(packet):
            yield DROPPED.format(chain, way, _remedy(chain, names, packet.iif, packet.oif))

    def _run(self, *words: str) -> Output:
        if words not in self._outputs:
            self._outputs[words] = self._machine.run(words)
        return self._outputs[words]

    def _read(self, path: Path) -> str:
        try:
            return self._machine.read(path) or ""
        except OSError:
            return ""

    # ---- policy routing -------------------------------------------------------------------------

    def _misrouted(
        self, far: Site, lan: str, device: str, others: Collection[str]
    ) -> Iterator[str]:
        """The fault if the kernel would not send a packet of the LAN through `device`.

        The rules of policy routing count, too.
        """
        source = str(host_in_lan(self._site))
        words = ("ip", "-j", "route", "get", str(far.gateway), "from", source, "iif", lan)
        output = self._run(*words)
        if output.status in (TIMED_OUT_STATUS, NOT_FOUND_STATUS):
            return
        rules = "".join(f"; ip rule has: {each}" for each in self._odd_rules())
        if output.status != 0:
            reason = output.reason.partition("answers: ")[2] or output.reason
            yield NO_ROUTE.format(far.gateway, reason, rules)
            return
        found = _json(output.out)
        leaves = found[0].get("dev") if isinstance(found, list) and found else None
        if isinstance(leaves, str) and leaves not in (device, *others):
            yield DIVERTED.format(far.gateway, leaves, device, rules)

    def _odd_rules(self) -> list[str]:
        """The rules besides the three of every machine, as `ip rule` prints them."""
        lines = self._run("ip", f"-{self._site.gateway.version}", "rule", "show").out.splitlines()
        found = [" ".join(line.split()) for line in lines if line.strip()]
        return [line for line in found if not _USUAL_RULE.search(line)][:MOST_RULES]

    # ---- firewalls ------------------------------------------------------------------------------

    def _dropping(self, packet: Packet) -> Iterator[tuple[str, Collection[str]]]:
        """The chains that certainly drop a packet, each with its tool, and the names around it."""
        return self._deciding(packet, "filter", HOOKS, "drop")

    def _deciding(
        self, packet: Packet, kind: str, hooks: Collection[str], decision: str
    ) -> Iterator[tuple[str, Collection[str]]]:
        """The base chains of a kind that certainly make this decision on a packet."""
        tool = "iptables" if packet.source.version == IPV4 else "ip6tables"
        output = self._run("nft", "-j", "list", "ruleset")
        text = output.out if output.status == 0 else ""
        for title, chains, base in parse_nft(text, packet, kind, hooks):
            family, _, table = title.partition(" ")
            is_iptables = family != "inet" and table in IPTABLES and base.isupper()
            # nft does not show everything in the rules of iptables.
            found = self._iptables(f"{tool}-nft", table, base, packet) if is_iptables else None
            if found is not None:
                yield from ((each, names) for each, names, word in found if word == decision)
            elif verdict(chains, base) == decision:
                yield f"nft (chain {base} of table {title})", chains
        tables = [x for x in IPTABLES if (x == "nat") is (kind == "nat")]
        for table in tables:
            if table in self._read(LEGACY_TABLES[tool]).split():
                for hook in hooks:
                    found = self._iptables(f"{tool}-legacy", table, hook.upper(), packet) or []
                    yield from ((each, names) for each, names, word in found if word == decision)

    def _iptables(
        self, tool: str, table: str, base: str, packet: Packet
    ) -> list[tuple[str, Collection[str], str]] | None:
        """The verdict of a chain; None if the tool cannot list it."""
        words = () if table == "filter" else ("-t", table)
        output = self._run(tool, *words, "-S")
        chains = parse_iptables(output.out, packet) if output.status == 0 else {}
        if base not in chains:
            return None
        where = f"chain {base}" if table == "filter" else f"chain {base} of table {table}"
        return [(f"{tool} ({where})", chains, verdict(chains, base))]


def _remedy(chain: str, names: Collection[str], lan: str, device: str) -> str:
    """The command that lets packets through, of the tool that keeps these chains, by their `names`.

    A rule of our own in its chains would be lost when the tool loads its rules again.
    """
    tool, ways = chain.partition(" ")[0], dict.fromkeys(((lan, device), (device, lan)))
    if "filter_FORWARD" in names:
        words = f"--change-interface={lan}, with --change-interface={device} and with --add-forward"
        return f"firewall-cmd --zone=internal with {words} lets it through (--permanent: for good)"
    if any(name.startswith("ufw-") for name in names):
        rules = [f"ufw route allow in on {one} out on {other}" for one, other in ways]
    elif "FORWARD" not in chain or " of table " in chain:
        return f"let it accept {lan} to {device}{', and back' * (lan != device)}"
    else:
        own = "DOCKER-USER" if "DOCKER-USER" in names else "FORWARD"
        rules = [f"{tool} -I {own} -i {one} -o {other} -j ACCEPT" for one, other in ways]
    return " and ".join(rules) + " let it through"


# ---- firewalls ----------------------------------------------------------------------------------


@dataclass
class Chain:
    """A chain.  policy: the verdict if no rule decides; "" in a chain that is only jumped to."""

    policy: str = ""
    rules: list[Rule] = field(default_factory=list)


@dataclass(frozen=True)
class Rule:
    """A rule.  matches: None if that is unknown.

    verdict: accept, drop, rewrite (its source), return, "", or jump NAME.
    """

    matches: bool | None
    verdict: str


def verdict(chains: Mapping[str, Chain], name: str) -> str:
    """The verdict on the packet: accept, drop, rewrite, or "" if it is unknown."""
    found = _walk(chains, name, 0)
    return (chains[name].policy or "accept") if found == "return" else found


def _walk(chains: Mapping[str, Chain], name: str, depth: int) -> str:
    """The verdict: accept, drop or rewrite; return: no rule decided; "": one may have."""
    if name not in chains or depth > MOST_JUMPS:
        return ""
    for rule in chains[name].rules:
        if rule.matches is False or not rule.verdict:
            continue
        word, _, target = rule.verdict.partition(" ")
        found = _walk(chains, target, depth + 1) if word == "jump" else word
        if word == "goto":
            found = _walk(chains, target, depth + 1)
        if found == "return" and word == "jump":
            continue
        if rule.matches is None:
            if found not in ("drop", "rewrite"):
                return ""  # the packet may be let through here
            continue
        return found
    return "return"


def parse_iptables(text: str, packet: Packet) -> dict[str, Chain]:
    """Read `iptables -S`."""
    chains: dict[str, Chain] = {}
    for line in text.splitlines():
        words = _words(line)
        word, name, *more = words if len(words) > 1 else ("", "")
        if word == "-P":
            chains[name] = Chain("drop" if more == ["DROP"] else "accept")
        elif word == "-N":
            chains.setdefault(name, Chain())
        elif word == "-A":
            chains.setdefault(name, Chain()).rules.append(_iptables_rule(more, packet))
    return chains


_NO_VERDICT = ("LOG", "NFLOG", "MARK", "CONNMARK", "TCPMSS", "CT")


def _iptables_rule(words: list[str], packet: Packet) -> Rule:
    matches: bool | None = True
    target, negated = "", False
    rest = iter(words)
    for word in rest:
        if word == "!":
            negated = True
            continue
        if word in ("-j", "-g"):
            name = next(rest, "")
            jump = "jump" if word == "-j" else "goto"
            target = {"ACCEPT": "accept", "DROP": "drop", "REJECT": "drop", "RETURN": "return"}.get(
                name, "" if name in _NO_VERDICT else f"{jump} {name}"
            )
            target = "rewrite" if name in ("MASQUERADE", "SNAT") else target
            break
        found = _iptables_match(word, rest, packet)
        matches = _all(matches, None if found is None else found is not negated)
        negated = False
    return Rule(matches, target)


def _iptables_match(  # noqa: PLR0911
    word: str, rest: Iterator[str], packet: Packet
) -> bool | None:
    if word == "-i":
        return _is_device(next(rest, ""), packet.iif)
    if word == "-o":
        return _is_device(next(rest, ""), packet.oif)
    if word == "-s":
        return _is_within(packet.source, next(rest, ""))
    if word == "-d":
        return _is_within(packet.target, next(rest, ""))
    if word == "-p":
        return next(rest, "") in ("tcp", "all")
    if word == "-m":
        return True if next(rest, "") in ("conntrack", "state", "comment", "tcp") else None
    if word in ("--ctstate", "--state"):
        return "NEW" in next(rest, "").split(",")
    if word == "--comment":
        return bool(next(rest, ""))
    return None


def _words(line: str) -> list[str]:
    """The words of a line as a shell would split it: comments are in quotation marks."""
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _is_device(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("+") else name == pattern


def parse_nft(
    text: str, packet: Packet, kind: str = "filter", hooks: Collection[str] = HOOKS
) -> Iterator[tuple[str, dict[str, Chain], str]]:
    """Read `nft -j list ruleset`: the base chains of a kind on these hooks, with their tables."""
    tables: dict[tuple[str, str], dict[str, Chain]] = {}
    bases: list[tuple[tuple[str, str], str]] = []
    data = _json(text)
    for entry in data.get("nftables", []) if isinstance(data, dict) else []:
        found = entry.get("chain") or entry.get("rule") if isinstance(entry, dict) else None
        if not isinstance(found, dict):
            continue
        table = (str(found.get("family")), str(found.get("table")))
        if table[0] not in ("inet", "ip" if packet.source.version == IPV4 else "ip6"):
            continue
        chains = tables.setdefault(table, {})
        if "chain" in entry:
            name = str(found.get("name"))
            chains[name] = Chain(str(found.get("policy", "")))
            if found.get("hook") in hooks and found.get("type", "filter") == kind:
                bases.append((table, name))
        elif str(found.get("chain")) in chains:
            chains[str(found["chain"])].rules.append(_nft_rule(found.get("expr"), packet))
    for table, name in bases:
        yield " ".join(table), tables[table], name


_NFT_VERDICTS = {
    "accept": "accept",
    "drop": "drop",
    "reject": "drop",
    "return": "return",
    "masquerade": "rewrite",
    "snat": "rewrite",
}
_NFT_STATEMENTS = ("counter", "log", "comment", "limit", "meta", "mangle")


def _nft_rule(statements: object, packet: Packet) -> Rule:
    matches: bool | None = True
    target = ""
    for statement in statements if isinstance(statements, list) else []:
        for key, value in statement.items() if isinstance(statement, dict) else ():
            if key == "match":
                matches = _all(matches, _nft_match(value, packet))
            elif key in _NFT_VERDICTS:
                target = _NFT_VERDICTS[key]
            elif key in ("jump", "goto"):
                target = f"{key} {value.get('target') if isinstance(value, dict) else ''}"
            elif key in ("vmap", "xt") or (key == "limit" and not target):
                matches = None if matches else matches
                target = target or ("accept" if key == "vmap" else "")
    return Rule(matches, target)


def _nft_match(value: dict[str, Any], packet: Packet) -> bool | None:
    left, right, operator = value.get("left"), value.get("right"), value.get("op")
    found = _nft_equals(left, right, packet)
    if found is None or operator in ("==", "in"):
        return found
    return not found if operator == "!=" else None


def _nft_equals(  # noqa: PLR0911
    left: object, right: object, packet: Packet
) -> bool | None:
    if not isinstance(left, dict):
        return None
    many = right.get("set") if isinstance(right, dict) else right
    if isinstance(many, list):  # a set, or flags
        return _any([_nft_equals(left, each, packet) for each in many])
    if isinstance(left.get("payload"), dict):
        return _nft_payload(left["payload"], right, packet)
    key = str((left.get("meta") or left.get("ct") or {}).get("key"))
    if "meta" in left and key in ("iifname", "iif", "oifname", "oif") and isinstance(right, str):
        pattern = right[:-1] + "+" if right.endswith("*") else right
        return _is_device(pattern, packet.iif if key.startswith("i") else packet.oif)
    if "meta" in left and key == "l4proto":
        return right == "tcp" if isinstance(right, str) else None
    if "meta" in left and key == "nfproto":
        return right == f"ipv{packet.source.version}"
    if "ct" in left and key == "state":
        return right == "new" if isinstance(right, str) else None
    if "ct" in left and key == "status" and right == "dnat":  # firewalld's rule for forwarded ports
        return False
    return None


def _nft_payload(payload: dict[str, Any], right: object, packet: Packet) -> bool | None:
    """Whether a match of a header field fits the packet; None if that is unknown."""
    own = "ip" if packet.source.version == IPV4 else "ip6"
    protocol, name = payload.get("protocol"), str(payload.get("field"))
    if protocol in ("ip", "ip6") and protocol != own:
        return False
    if protocol == own:
        address = {"saddr": packet.source, "daddr": packet.target}.get(name)
        return None if address is None else _is_within(address, _nft_subnet(right))
    return False if protocol in ("icmp", "icmpv6", "udp") else None


def _nft_subnet(right: object) -> str:
    if isinstance(right, dict) and isinstance(right.get("prefix"), dict):
        return f"{right['prefix'].get('addr')}/{right['prefix'].get('len')}"
    return str(right)


# ---- small parts --------------------------------------------------------------------------------


def _all(*found: bool | None) -> bool | None:
    """False if one is false, else None if one is unknown, else True."""
    if False in found:
        return False
    return None if None in found else True


def _any(found: list[bool | None]) -> bool | None:
    """True if one is true, else None if one is unknown, else False."""
    if True in found:
        return True
    return None if None in found else False


def _is_within(address: Address, text: str) -> bool | None:
    try:
        return _is_in(address, ip_network(text, strict=False))
    except ValueError:
        return None


def _is_in(address: Address, subnet: Subnet) -> bool:
    return address.version == subnet.version and address in subnet


def _json(text: str) -> Any:  # noqa: ANN401
    try:
        return json.loads(text)
    except ValueError:
        return []
