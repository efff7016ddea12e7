"""What one request to a test server costs: a little work, the same in both servers."""

import json


def answer(number: int) -> bytes:
    """Return a JSON answer of about 1 kB, some tens of microseconds of pure Python and C."""
    items = [{"id": i, "name": f"item {i}", "price": (number * i) % 97 / 4} for i in range(24)]
    total = sum(item["price"] for item in items if isinstance(item["price"], float))
    return json.dumps({"number": number, "items": items, "total": total}).encode()
