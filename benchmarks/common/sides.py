"""What is compared: the sides of the cases, several of which have one of a name."""

from dataclasses import dataclass

Side = str
"""A name of LOOKS."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a side is shown on the page."""

    colour: str
    words: str
    """What it is, as HTML; `{command}` is the suite's command of cpythonplus."""


LOOKS: dict[Side, Look] = {
    "stock": Look("#8a8f98", "the interpreter as it is"),
    "plus": Look("#1f6feb", "the same interpreter under <code>cpythonplus {command}</code>"),
    "threads-only": Look("#7fb2ff", "the same with <code>--no-gil</code>"),
    "peer": Look("#d29922", "stock, with another package in place of the standard library"),
    "gc.freeze": Look("#d29922", "stock with <code>gc.freeze()</code> before the fork"),
    "gc-off": Look("#b07aa1", "stock with the garbage collector kept off"),
    "watch": Look("#1f6feb", "under <code>memory.cycles.watch()</code>"),
    "tasklets": Look("#1f6feb", "<code>cpythonplus.tasklets</code>"),
    "scheduled": Look("#7fb2ff", "tasklets, under <code>cpythonplus run</code>"),
    "greenlet": Look("#2f9e6e", "switches by name"),
    "cloudpickle": Look("#d29922", "of a state that was written by hand"),
    "gevent": Look("#9bc53d", "its greenlets, queues and event loop"),
    "uvloop": Look("#2f9e6e", "asyncio's protocols and tasks on uvloop's loop"),
    "asyncio": Look("#8a8f98", "tasks, queues and protocols of the standard library"),
    "streams": Look("#c4c8ce", "asyncio's streams"),
    "go": Look("#d29922", "goroutines, on one core"),
    "threads": Look("#b07aa1", "of the operating system"),
    "queue.Queue": Look("#8a8f98", "of the standard library"),
    "SimpleQueue": Look("#c4c8ce", "of the standard library"),
    "jemalloc": Look("#2f9e6e", "under <code>cpythonplus run --malloc jemalloc</code>"),
    "mimalloc": Look("#d29922", "under <code>cpythonplus run --malloc mimalloc</code>"),
    "glibc-tuned": Look("#b07aa1", "under <code>cpythonplus run --malloc glibc-tuned</code>"),
    "dict": Look("#8a8f98", "of the interpreter"),
    "shared dict": Look("#7fb2ff", "a dict made by <code>memory.shared_dict</code>"),
    "CompactDict": Look("#b07aa1", "<code>memory.CompactDict</code>"),
    "Record": Look("#1f6feb", "a class on <code>memory.Record</code>"),
    "Record hook": Look("#5b8def", "the same, made one by one by the parser"),
    "msgspec": Look("#2f9e6e", "a <code>msgspec.Struct</code> with <code>gc=False</code>"),
    "msgspec dict": Look("#9bc53d", "dicts that msgspec makes"),
    "recordclass": Look("#d29922", "a class of <code>recordclass.make_dataclass</code>"),
    "slots": Look("#8b6f47", "a class with <code>__slots__</code>"),
    "namedtuple": Look("#c4c8ce", "of the standard library"),
    "tuple": Look("#e0e3e7", "of the values, without names"),
    "polars": Look("#c46210", "a DataFrame, whose values are no objects"),
    "direct": Look("#9aa0a6", "routed, without a tunnel"),
    "wireguard": Look("#1b7f5c", "through WireGuard between the gateways"),
    "ssh": Look("#c46210", "through <code>ssh -w</code> between the gateways"),
    "openvpn": Look("#4e79a7", "through OpenVPN over UDP between the gateways"),
}
"""In the order in which they are shown."""

ALL_SIDES: tuple[Side, ...] = tuple(LOOKS)
SIDES: tuple[Side, ...] = ("stock", "plus")
"""What a case has that does not say otherwise."""
