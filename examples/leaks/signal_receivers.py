"""Receivers that are connected for each request and never disconnected."""

from collections.abc import Callable

from examples.leaks.service import serve


class Signal:
    """Calls whoever has connected."""

    def __init__(self) -> None:
        """Nobody has."""
        self.receivers: list[Callable[[], object]] = []  # LEAK __main__.saved.receivers

    def connect(self, receiver: Callable[[], object]) -> None:
        """Call it from now on."""
        self.receivers.append(receiver)


class Form:
    """What a request fills in."""

    def __init__(self, number: int) -> None:
        """Make the fields."""
        self.fields = {f"field{i}": str(number) for i in range(10)}

    def saved(self) -> None:
        """Do what is to be done then."""


saved = Signal()


def tick(number: int) -> None:
    """Serve one request."""
    form = Form(number)
    saved.connect(form.saved)


serve(tick)
