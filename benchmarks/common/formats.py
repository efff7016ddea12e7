"""How numbers are written in tables and pages: three figures that matter, no more."""

_DECIMALS = ((99.95, 0), (9.995, 1), (0.9995, 2))
"""From which value on how many decimals; below the last, three."""

_NEAR_ONE = 9.995
"""Ratios below this are given with three decimals."""


def number(value: float) -> str:
    """Return `value` with three significant figures, thousands grouped, no exponent."""
    decimals = next((decimals for limit, decimals in _DECIMALS if value >= limit), 3)
    return f"{value:,.{decimals}f}"


def ratio(value: float) -> str:
    """Return a ratio: near 1 the third decimal matters, far from it nothing does."""
    return f"{value:.3f} x" if value < _NEAR_ONE else f"{number(value)} x"


def verdict(*, reached: bool) -> str:
    """Return the word for a target that was or was not reached."""
    return "reached" if reached else "not reached"


def measured(quantity: str, value: float) -> str:
    """Return a target's measured value with its unit."""
    match quantity:
        case (
            "ratio"
            | "geometric_mean"
            | "rate_against"
            | "figure_ratio"
            | "figure_to"
            | "cost_to"
            | "times_faster"
            | "times_case"
            | "p50_to_alone"
            | "p99_to_alone"
        ):
            return ratio(value)
        case "p99_ms" | "extra_ms":
            return f"{number(value)} ms"
        case "rate_s":
            return f"{number(value)} s"
        case "private_mib" | "rise_mib":
            return f"{number(value)} MiB"
        case "extra_cpu_s":
            return f"{value:+.3f} s"
        case _:
            return number(value)
