"""`cpythonplus facts`: the facts about this interpreter's private structures, and their proofs."""

import json
from collections.abc import Sequence

from cpythonplus import _interp
from cpythonplus._base.text.text_tables import columns, wrapped
from cpythonplus._cli.parser import Parser
from cpythonplus._cli.terminal import show

DESCRIPTION = (
    "Proves what features take for granted of this interpreter's private structures."
    " What is refused, these features refuse too, or go on without."
)
_EPILOG = "Exit status: 0 all proven, 1 something is refused, 2 wrong usage."


def main(arguments: Sequence[str]) -> int:
    """Run `cpythonplus facts ARGUMENTS`. Raises UsageError for wrong ones."""
    parser = Parser(
        prog="cpythonplus facts", description=DESCRIPTION, epilog=_EPILOG, allow_abbrev=False
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    found = _interp.facts()
    if options.json:
        text = json.dumps([fact.as_json() for fact in found], indent=2) + "\n"
    else:
        text = _table(found)
    status = show(text)
    return status or int(any(fact.state == "refused" for fact in found))


def _table(found: Sequence[_interp.Fact]) -> str:
    rows = columns([(fact.name, fact.state, fact.features) for fact in found])
    lines: list[str] = []
    for fact, row in zip(found, rows, strict=True):
        lines.append(row)
        if fact.refusal:
            lines += wrapped(fact.refusal, "    ", "    ")
            for each in _interp.sentences(fact.name):
                lines += wrapped(each, "    ", "      ")
    return "\n".join(lines) + "\n"
