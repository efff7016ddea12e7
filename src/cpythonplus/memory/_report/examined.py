"""The base of what an examination returns."""

from typing import ClassVar

from cpythonplus._base.data import Data

__all__ = ["Examined"]


class Examined(Data):
    """Data of one examination, which print themselves as its part of a report."""

    __slots__ = ()
    examination: ClassVar[str]
    """Its name in the registry."""

    def text(self, top: int = 10) -> str:
        """Return the verdict and tables of the `top` largest rows."""
        from cpythonplus.memory._report.text import part_text

        return part_text(self.examination, self.as_json(), top).rstrip("\n")

    def __str__(self) -> str:
        return self.text()
