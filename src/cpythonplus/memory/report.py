"""What examinations found, for people: as text, as a page, on a live screen."""

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from cpythonplus.memory._report.live import line, screen
    from cpythonplus.memory._report.page import page, write_page
    from cpythonplus.memory._report.text import part_text, report_text

__all__ = ["line", "page", "part_text", "report_text", "screen", "write_page"]

_HOMES = {
    "line": "live",
    "page": "page",
    "part_text": "text",
    "report_text": "text",
    "screen": "live",
    "write_page": "page",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"cpythonplus.memory._report.{_HOMES[name]}"), name)
