"""Compares the user's program in stock Python and under cpythonplus, alternating on one machine."""

from cpythonplus._compare.comparison import Comparison, measure
from cpythonplus._compare.errors import ComparisonError
from cpythonplus._compare.load import Settings, sent
from cpythonplus._compare.page import page
from cpythonplus._compare.report import as_json, text
from cpythonplus._compare.service import parse_url
from cpythonplus._compare.sides import sides
from cpythonplus._compare.signals import caught

__all__ = [
    "Comparison",
    "ComparisonError",
    "Settings",
    "as_json",
    "caught",
    "measure",
    "page",
    "parse_url",
    "sent",
    "sides",
    "text",
]
