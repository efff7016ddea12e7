"""What an examination found, for people: as text, and as one self-contained HTML page."""

from cpythonplus.memory.page.text import report_text
from cpythonplus.memory.page.writing import page, write_page

__all__ = ["page", "report_text", "write_page"]
