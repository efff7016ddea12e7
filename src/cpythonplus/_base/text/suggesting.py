"""Suggestions for mistyped words."""


def suggestion(word: str, known: list[str]) -> str:
    """Return ` (did you mean X?)` if one of the `known` words is close, else ""."""
    from difflib import get_close_matches  # only for an error: it costs milliseconds

    close = get_close_matches(word, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""
