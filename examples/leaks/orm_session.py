"""A session that keeps each object which it has loaded (an identity map)."""

from examples.leaks.service import serve


class Row:
    """One record."""

    def __init__(self, key: int) -> None:
        """Load it."""
        self.key = key
        self.values = {"name": f"row {key}", "text": "y" * 200}


class Session:
    """Loads each record once."""

    def __init__(self) -> None:
        """Nothing is loaded."""
        self.identity_map: dict[tuple[type, int], Row] = {}  # LEAK __main__.session.identity_map

    def get(self, key: int) -> Row:
        """Return a record."""
        return self.identity_map.setdefault((Row, key), Row(key))


session = Session()
serve(session.get)
