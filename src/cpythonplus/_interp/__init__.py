"""What is known of the interpreter's private structures, and whether it holds here."""

from cpythonplus._interp.facts import Fact, facts

__all__ = ["Fact", "facts"]
