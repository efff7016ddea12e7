"""How results are kept in the repository: small, and with a line for each row."""

import json
from collections.abc import Mapping

__all__ = ["stored"]


def stored(found: Mapping[str, object]) -> str:
    """Return JSON without indentation; each item of a list or dict at the top has its own line."""

    def text(value: object) -> str:
        return json.dumps(value, separators=(",", ":"))

    def lines(value: object) -> str:
        if isinstance(value, list) and value:
            return "[\n" + ",\n".join(map(text, value)) + "\n]"
        if isinstance(value, dict) and value:
            return "{\n" + ",\n".join(f"{text(k)}:{text(v)}" for k, v in value.items()) + "\n}"
        return text(value)

    return "{\n" + ",\n".join(f"{text(k)}:{lines(v)}" for k, v in found.items()) + "\n}\n"
