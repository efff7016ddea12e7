"""The results of examinations for people: as text, and as a page."""

from cpythonplus import _on_demand

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from cpythonplus._doctor.report.page import page, write_page
    from cpythonplus._doctor.report.text import report_text

__all__ = ["page", "report_text", "write_page"]

_HOMES = {
    "cpythonplus._doctor.report.page": "page write_page",
    "cpythonplus._doctor.report.text": "report_text",
}
if not TYPE_CHECKING:  # names that are not listed are errors
    __getattr__, __dir__ = _on_demand(globals(), _HOMES)
