"""Data in less memory: dicts, records, and dicts that share their keys."""

from cpythonplus import _on_demand

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from cpythonplus.compact._dict import CompactDict
    from cpythonplus.compact._record import Record
    from cpythonplus.compact._shared_keys import share_keys, shared_dict

__all__ = ["CompactDict", "Record", "share_keys", "shared_dict"]

_HOMES = {
    "CompactDict": "._dict",
    "Record": "._record",
    "share_keys": "._shared_keys",
    "shared_dict": "._shared_keys",
}
if not TYPE_CHECKING:  # names that are not listed are errors
    __getattr__, __dir__ = _on_demand(globals(), _HOMES)
