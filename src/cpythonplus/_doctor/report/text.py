"""The report for a terminal: the verdict in plain words, then tables; at most 100 columns wide."""

from textwrap import wrap

from cpythonplus._base.reading import Examination, Part, texts
from cpythonplus._base.text.text_tables import WIDTH, layout_lines, wrapped
from cpythonplus._doctor.report.sections import losses, section, sections, target_line
from cpythonplus._doctor.report.verdict import statements


def report_text(examination: Examination, top: int = 10, width: int = WIDTH) -> str:
    """Return the findings of an examination as text.

    examination: `as_json()` of each part by its name, parts may be missing. top: rows of each
    table. The verdict comes first: resident memory, the largest holders, advice, the largest first.
    Every character of the names in it is visible. No line is wider than 100 columns except
    commands, which are for copying; no table is wider than `width`.
    """
    lines: list[str] = []
    target = target_line(examination)
    if target:
        lines += wrap(target, WIDTH, break_on_hyphens=False)
    for sentence in losses(examination):
        lines += wrapped(sentence, "! ", "  ")
    if lines:
        lines.append("")
    lines += _verdict(examination)
    for found in sections(examination, top):
        lines += [
            "",
            found.title,
            "-" * len(found.title),
            *layout_lines(found.lines, found.tables, width),
        ]
    return _joined(lines) or "nothing was examined\n"


def part_text(name: str, found: Part, top: int = 10, width: int = WIDTH) -> str:
    """Return the verdict and tables of one examination, without a heading."""
    examination = {name: found}
    said = [line for each in texts(found, "losses") for line in wrapped(each, "! ", "  ")]
    said += _verdict(examination)
    body = section(examination, name, "", top)
    between = [""] if said else []
    return _joined([*said, *between, *layout_lines(body.lines, body.tables, width)])


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _verdict(examination: Examination) -> list[str]:
    lines: list[str] = []
    for statement in statements(examination):
        lines += wrapped(statement.sentence, "- ", "  ")
        lines += wrapped(statement.remedy, "  -> ", "     ") if statement.remedy else []
        lines += [f"     {statement.command}"] if statement.command else []
    return lines
