"""An application whose workers share a catalogue that every request reads."""

from collections.abc import Callable, Iterable

ROWS = [{"id": i, "name": f"item {i}", "price": i % 100} for i in range(150_000)]


def app(
    environ: dict[str, object], start_response: Callable[[str, list[tuple[str, str]]], object]
) -> Iterable[bytes]:
    """Answer with a sum over all rows, which touches each of them."""
    del environ
    body = str(sum(row["price"] for row in ROWS if row["name"])).encode()  # type: ignore[misc]
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
