"""The numbers of a policy: names, defaults, bounds.

They are apart from ``Policy`` so that the start-up hook can check and use them without importing
``dataclasses``.
"""

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from collections.abc import Mapping

SHARE = "batch_share"


class Limit:
    """One field of a policy: its default, its least and greatest value, and what it is for."""

    __slots__ = ("default", "greatest", "least", "name", "purpose")

    def __init__(
        self, name: str, default: float, least: float, greatest: float, purpose: str
    ) -> None:
        self.name = name
        self.default = default
        self.least = least
        self.greatest = greatest
        self.purpose = purpose


LIMITS: tuple[Limit, ...] = (
    Limit(
        "slice_us",
        10_000,
        100,
        10_000_000,
        "one turn among threads that use the GIL alike; never shorter than the switch interval",
    ),
    Limit(
        SHARE,
        0.05,
        0.0,
        0.9,
        "smallest share of the GIL's time that batch threads together get while one of them waits",
    ),
    Limit(
        "spin_us",
        20,
        0,
        1_000,
        "how long a waiter polls before it sleeps, when more than one CPU may be used",
    ),
)


def checked(values: "Mapping[str, object]") -> tuple[int, float, int]:
    """Return the three numbers in the order of LIMITS, defaults filled in.

    Raises ValueError, naming the field, for one that is unknown, not a number or out of bounds.
    """
    unknown = set(values) - {limit.name for limit in LIMITS}
    if unknown:
        raise ValueError(f"{min(unknown)} is not a field of the policy")
    numbers = [_checked_one(limit, values.get(limit.name, limit.default)) for limit in LIMITS]
    slice_, share, spin = numbers
    return int(slice_), float(share), int(spin)


def _checked_one(limit: Limit, value: object) -> float:
    whole = isinstance(limit.default, int)
    kind = "a whole number" if whole else "a number"
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise ValueError(f"{limit.name} must be {kind}, not {value!r}")
    if not limit.least <= value <= limit.greatest:
        raise ValueError(
            f"{limit.name} must be from {limit.least} to {limit.greatest}, not {value!r}"
        )
    return value


def read(text: str) -> dict[str, object]:
    """Return the fields in a text like `slice_us=5000,spin_us=0`; ValueError says what is wrong."""
    kinds = {limit.name: type(limit.default) for limit in LIMITS}
    values: dict[str, object] = {}
    for pair in text.split(","):
        name, _, value = (part.strip() for part in pair.partition("="))
        if name not in kinds:
            from cpythonplus._base.text.suggesting import suggestion

            hint = suggestion(name, [*kinds]) or f" (its keys are {', '.join(kinds)})"
            raise ValueError(f"the policy has no key {name!r}{hint}")
        try:
            values[name] = kinds[name](value)
        except ValueError:
            kind = "a whole number" if kinds[name] is int else "a number"
            raise ValueError(f"{name}: expected {kind}, got {value!r}") from None
    checked(values)
    return values


def read_share(text: str) -> float:
    """Return the share of the GIL in a text like `25%` or `25`; ValueError says what is wrong."""
    digits = text.removesuffix("%")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 9):  # noqa: PLR2004
        raise ValueError(f"expected a percentage like 25%, got {text!r}")
    share = int(digits) / 100
    try:
        checked({SHARE: share})
    except ValueError:
        raise ValueError(f"expected 0% to 90%, got {text!r}") from None
    return share


def written(values: "Mapping[str, object]") -> str:
    """Return the text from which `read` makes these values."""
    return ",".join(f"{name}={value!r}" for name, value in values.items())
