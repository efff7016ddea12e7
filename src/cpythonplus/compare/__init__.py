"""The user's program, stock beside plus, in alternation on one machine."""

from cpythonplus.compare.comparison import Comparison, measure
from cpythonplus.compare.errors import ComparisonError
from cpythonplus.compare.page import page
from cpythonplus.compare.report import as_json, text
from cpythonplus.compare.service import Settings, parse_url
from cpythonplus.compare.sides import sides
from cpythonplus.compare.signals import caught

__all__ = [
    "Comparison",
    "ComparisonError",
    "Settings",
    "as_json",
    "caught",
    "measure",
    "page",
    "parse_url",
    "sides",
    "text",
]
