"""A pool that counts connections that are never given back."""

from examples.leaks.service import serve


class Connection:
    """One to a server."""

    def __init__(self, number: int) -> None:
        """Take buffers."""
        self.number = number
        self.buffer = bytearray(2000)


class Pool:
    """Lends connections."""

    def __init__(self) -> None:
        """Nothing is lent."""
        self.lent: dict[int, Connection] = {}  # LEAK __main__.pool.lent

    def take(self, number: int) -> Connection:
        """Return a new connection, for it finds none that is free."""
        self.lent[number] = Connection(number)
        return self.lent[number]


pool = Pool()
serve(pool.take)
