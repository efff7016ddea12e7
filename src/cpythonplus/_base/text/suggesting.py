"""What a mistyped word may have meant."""

__all__ = ["suggestion"]


def suggestion(word: str, known: list[str]) -> str:
    """` (did you mean X?)` where one of the `known` words is close, else nothing."""
    from difflib import get_close_matches  # on the way to an error only: it costs milliseconds

    close = get_close_matches(word, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""
