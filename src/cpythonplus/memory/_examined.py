"""The base of what an examination returns."""

from typing import Any, ClassVar

from cpythonplus._base.data import Data


class Examined(Data):
    """Data of one examination, which print themselves as its part of a report."""

    __slots__ = ()
    examination: ClassVar[str]
    """The name of the examination in the registry."""

    def text(self, top: int = 10) -> str:
        """Return the verdict and tables of the `top` largest rows."""
        return self._worded(self.as_json(), top)

    def __str__(self) -> str:
        return self.text()

    def _worded(self, found: dict[str, Any], top: int) -> str:
        """Return the words of `found`, the whole or a part of `as_json()`."""
        from cpythonplus._doctor.report.text import part_text

        return part_text(self.examination, found, top).rstrip("\n")
