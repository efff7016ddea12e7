"""weakref.finalize() keeps its arguments as long as the object lives: here for ever."""

import weakref

from examples.leaks.service import serve


class Server:
    """It lives as long as the program."""


server = Server()


def close(buffer: bytearray) -> None:
    """Do what is left to be done."""
    buffer.clear()


def tick(number: int) -> None:
    """Make something that is to be closed with the server."""
    weakref.finalize(server, close, bytearray(700 + number % 5))  # LEAK weakref.finalize._registry


serve(tick)
