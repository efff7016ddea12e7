"""The profile in three formats that other tools show; the end of the file's name chooses one.

Holds and waits are two profiles in one file: two roots of the folded stacks, four profiles of
speedscope (each by time and by count), two threads of Firefox's profiler.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Json = dict[str, object]
Frame = tuple[str, str, int]
"""Function, file, line."""
KINDS = {"holds": "holds the GIL", "waits": "waits for the GIL"}
_REST = ("stacks for which there was no room", "", 0)
_NO_PYTHON = ("no Python function", "", 0)
_CUT = ("more callers", "", 0)


def format_of(file: str) -> Callable[[Mapping[str, object]], str]:
    """Return the writer for a file by the end of its name; ValueError if there is none."""
    for ending, write in ENDINGS.items():
        if file.endswith(ending):
            return write
    raise ValueError(f"expected a name that ends in {', '.join(ENDINGS)}, got {file!r}")


def written(profile: Mapping[str, object], file: str) -> str:
    """Return the text of a profile as `recording.taken` returns it."""
    return format_of(file)(profile)


def _stacks(profile: Mapping[str, object], kind: str) -> Iterator[tuple[list[Frame], int, int]]:
    """Yield each stack, outermost first, with its count and its nanoseconds."""
    functions: list[tuple[str, str, int]] = profile["functions"]  # type: ignore[assignment]
    for stack in profile["stacks"]:  # type: ignore[attr-defined]
        count, total_ns, _ = stack[kind]
        if not count:
            continue
        frames = [
            (functions[number][0], functions[number][1], line) for number, line in stack["frames"]
        ]
        if not frames:
            frames = [_REST if stack["is_rest"] else _NO_PYTHON]
        if stack["is_cut"]:
            frames.append(_CUT)
        yield frames[::-1], count, total_ns


def _label(frame: Frame) -> str:
    name, file, line = frame
    return f"{name} ({file.rpartition('/')[2]}:{line})" if file else name


def folded(profile: Mapping[str, object]) -> str:
    """Return folded stacks, weighted by microseconds: for flamegraph.pl, inferno and others."""
    sums: dict[str, float] = {}
    for kind, root in KINDS.items():
        for frames, _, total_ns in _stacks(profile, kind):
            line = ";".join([root, *(_label(each).replace(";", ":") for each in frames)])
            sums[line] = sums.get(line, 0) + total_ns / 1000
    return "".join(f"{line} {max(round(weight), 1)}\n" for line, weight in sums.items())


def speedscope(profile: Mapping[str, object]) -> str:
    """Return a file of https://www.speedscope.app."""
    numbers: dict[Frame, int] = {}
    profiles: list[Json] = []
    for kind, title in KINDS.items():
        found = list(_stacks(profile, kind))
        samples = [[numbers.setdefault(each, len(numbers)) for each in row[0]] for row in found]
        for at, unit, what in ((2, "nanoseconds", "time"), (1, "none", "count")):
            weights = [row[at] for row in found]
            profiles.append(
                {
                    "type": "sampled",
                    "name": f"{title}: {what}",
                    "unit": unit,
                    "startValue": 0,
                    "endValue": sum(weights),  # type: ignore[arg-type]
                    "samples": samples,
                    "weights": weights,
                }
            )
    frames = [{"name": name, "file": file, "line": line} for name, file, line in numbers]
    content = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "cpythonplus",
        "name": f"GIL of process {profile['pid']}",
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": profiles,
    }
    return json.dumps(content) + "\n"


def firefox(profile: Mapping[str, object]) -> str:
    """Return a processed profile of https://profiler.firefox.com, of its version 48."""
    content = {
        "meta": {
            "interval": 1,
            "startTime": 0,
            "processType": 0,
            "product": "cpythonplus",
            "stackwalk": 0,
            "version": 27,
            "preprocessedProfileVersion": 48,
            "symbolicationNotSupported": True,
            "categories": [{"name": "Python", "color": "yellow", "subcategories": ["Other"]}],
            "markerSchema": [],
        },
        "libs": [],
        "pages": [],
        "threads": [
            _firefox_thread(list(_stacks(profile, kind)), title, number, str(profile["pid"]))
            for number, (kind, title) in enumerate(KINDS.items())
        ],
    }
    return json.dumps(content) + "\n"


def _firefox_thread(
    rows: list[tuple[list[Frame], int, int]], name: str, tid: int, pid: str
) -> Json:
    strings: dict[str, int] = {}
    functions: dict[tuple[str, str], int] = {}
    frames: dict[tuple[int, int], int] = {}
    stacks: dict[tuple[int | None, int], int] = {}
    leaves, times = [], []
    for row in rows:
        leaf: int | None = None
        for function, file, line in row[0]:
            of_function = functions.setdefault((function, file), len(functions))
            frame = frames.setdefault((of_function, line), len(frames))
            leaf = stacks.setdefault((leaf, frame), len(stacks))
        leaves.append(leaf)
        times.append(row[2] / 1e6)

    def string(text: str) -> int:
        return strings.setdefault(text, len(strings))

    def table(length: int, **columns: object) -> Json:
        filled = {
            key: value if isinstance(value, list) else [value] * length
            for key, value in columns.items()
        }
        return {**filled, "length": length}

    def empty(*columns: str) -> Json:
        return table(0, **{column: [] for column in columns})

    return {
        "processType": "default",
        "processStartupTime": 0,
        "processShutdownTime": None,
        "registerTime": 0,
        "unregisterTime": None,
        "pausedRanges": [],
        "name": name,
        "isMainThread": tid == 0,
        "pid": pid,
        "tid": tid,
        "samples": {
            **table(len(rows), stack=leaves, time=_sums(times), weight=times),
            "weightType": "tracing-ms",
        },
        "markers": empty("data", "name", "startTime", "endTime", "phase", "category"),
        "stackTable": table(
            len(stacks),
            frame=[frame for _, frame in stacks],
            prefix=[prefix for prefix, _ in stacks],
            category=0,
            subcategory=0,
        ),
        "frameTable": table(
            len(frames),
            address=-1,
            inlineDepth=0,
            category=0,
            subcategory=0,
            func=[function for function, _ in frames],
            nativeSymbol=None,
            innerWindowID=0,
            implementation=None,
            line=[line for _, line in frames],
            column=None,
        ),
        "funcTable": table(
            len(functions),
            isJS=False,
            relevantForJS=False,
            name=[string(function) for function, _ in functions],
            resource=-1,
            fileName=[string(file) if file else None for _, file in functions],
            lineNumber=None,
            columnNumber=None,
        ),
        "resourceTable": empty("lib", "name", "host", "type"),
        "nativeSymbols": empty("libIndex", "address", "name", "functionSize"),
        "stringArray": [*strings],
    }


def _sums(times: list[float]) -> list[float]:
    """Return where each time begins if they lie one behind the other."""
    result, now = [], 0.0
    for each in times:
        result.append(now)
        now += each
    return result


ENDINGS: dict[str, Callable[[Mapping[str, object]], str]] = {
    ".folded": folded,
    ".speedscope.json": speedscope,
    ".firefox.json": firefox,
}
