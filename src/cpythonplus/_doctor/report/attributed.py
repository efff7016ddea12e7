"""Growth by task or route as lines and tables."""

from typing import Final

from cpythonplus._base.reading import Part, amount, entries, size, words
from cpythonplus._base.text.sizes import format_size
from cpythonplus._base.text.tables import Layout, signed, table

_FINDINGS: Final = {
    "grows": "grows",
    "steady": "steady",
    "warms up": "steady after its first calls",
    "levels off": "levels off, as a cache that fills",
    "offset": "no: as much may be freed elsewhere",
    "unclear": "cannot be told from {beside}",
    "too few": "too few calls",
}
_EVIDENCE: Final = {"alone": "alone", "together": "among others"}


def attributed_layout(found: Part, top: int) -> Layout:
    """Return the growth by task or route."""
    private, before = size(found, "private_bytes"), size(found, "private_before_bytes")
    grown, told_nowhere = (
        signed(size(found, name)) for name in ("grown_bytes", "unattributed_bytes")
    )
    calls, seconds = size(found, "calls"), amount(found, "seconds")
    now = f"private memory {format_size(before)} -> {format_size(private)}"
    rest = f"of that {told_nowhere} in no row that grows"
    lines = [
        f"{calls:,} calls in {seconds:,.0f} s; {now}",
        f"the last half of the calls: {grown}, {rest}",
    ]
    if found.get("collected") is False:
        lines.append("cyclic garbage that waits for the collector counts as growth")
    if found.get("malloc") is False:
        lines.append("by private memory, which is coarse: malloc tells nothing, or takes too long")
    rows = [_row(row) for row in entries(found, "rows")]
    columns = "a call:change=bytes_per_call|+-:size=error_bytes|together:change=grown_bytes"
    columns += "|at first:change=first_bytes|calls:count|measured=measured|task or route=name"
    columns += "|:note=finding"
    return tuple(lines), tuple(table("", columns, rows, top))


def _row(row: Part) -> Part:
    evidence = words(row, "evidence")
    alone = size(row, "alone")
    measured = f"{alone:,} alone" if evidence == "alone" else _EVIDENCE.get(evidence, "")
    return {**row, "measured": measured, "finding": finding_text(row)}


def finding_text(row: Part) -> str:
    """Return the finding of a row, in words."""
    finding = words(row, "finding")
    beside = words(row, "beside") or "the others"
    return _FINDINGS.get(finding, finding).replace("{beside}", beside)
