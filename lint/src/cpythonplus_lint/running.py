"""Many files: read, checked, perhaps fixed, by as many processes as there are processors."""

from __future__ import annotations

import errno
import gc
import os
import signal
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cpythonplus_lint.checking import check, check_text
from cpythonplus_lint.checks.source import Source, UnreadableError, decoded, split
from cpythonplus_lint.contents import contents
from cpythonplus_lint.files import replace_file
from cpythonplus_lint.fixing import MAX_ROUNDS, fixed
from cpythonplus_lint.model import Problem, Violation
from cpythonplus_lint.rules import Selection

_CHUNK = 50
"""Files that a worker process gets at a time."""
_FEW = 100
"""Up to here one process is quicker than starting others."""
_NO_MEMORY = "cannot be checked: there is not enough memory"


class WorkerEndedError(Exception):
    """A process that checked files was killed: the system had no memory left, perhaps."""


@dataclass(frozen=True, slots=True)
class FileResult:
    """What was found in one file, and what is left after fixing."""

    path: str
    violations: tuple[Violation, ...] = ()
    lines: tuple[str, ...] = ()
    """For each violation the text of its first line: columns are counted in it."""
    problem: Problem | None = None
    fixed: int = 0


def check_file(path: str, selection: Selection, *, fix: bool = False) -> FileResult:
    """Check one file; with `fix`, also write it back with what could be fixed.

    Whatever goes wrong is the file's problem: the others are still to be read.
    """
    try:
        data = contents(path)
        result, text = _checked(data, path, selection, fix=fix)
        if result.fixed:
            _write(path, data, text)
    except UnreadableError as error:
        return FileResult(path, problem=error.problem)
    except MemoryError:
        message = _NO_MEMORY
    except OSError as error:
        verb = "read" if error.filename == path else "written"
        message = f"cannot be {verb}: {error.strerror}"
    except Exception as error:  # noqa: BLE001
        return FileResult(path, problem=_internal(error))
    else:
        return result
    return FileResult(path, problem=Problem(1, 0, message))


def _internal(error: Exception) -> Problem:
    message = f"internal error, please report it: {type(error).__name__}: {error}"
    return Problem(1, 0, " ".join(message.splitlines()))


def _checked(data: bytes, name: str, selection: Selection, *, fix: bool) -> tuple[FileResult, str]:
    """Check the bytes of a file; returns also its text, with `fix` the fixed one."""
    text = decoded(data)
    found, count = check_text(text, name, selection), 0
    if fix and not isinstance(found, Problem) and any(hit.fix for hit in found):
        text, found, count = fix_text(text, name, selection)
    if isinstance(found, Problem):
        return FileResult(name, problem=found), text
    lines = split(text) if found else []
    rows = tuple(lines[hit.row - 1].rstrip("\r\n") for hit in found)
    return FileResult(name, tuple(found), rows, None, count), text


def check_stdin(
    data: bytes, name: str, selection: Selection, *, fix: bool = False
) -> tuple[FileResult, bytes]:
    """Check what does not stand in a file; returns also its bytes, with `fix` the fixed ones."""
    try:
        with _uncollected():
            result, text = _checked(data, name, selection, fix=fix)
            return result, _encoded(data, text) if result.fixed else data
    except UnreadableError as error:
        return FileResult(name, problem=error.problem), data
    except MemoryError:
        return FileResult(name, problem=Problem(1, 0, _NO_MEMORY)), data
    except Exception as error:  # noqa: BLE001
        return FileResult(name, problem=_internal(error)), data


def fix_text(text: str, path: str, selection: Selection) -> tuple[str, list[Violation], int]:
    """Fix until nothing is left to fix; returns the new text, what is left, and the number."""
    total = 0
    source = Source(text, path)
    found = check(source, selection)
    for _ in range(MAX_ROUNDS):
        new, count = fixed(source, found)
        if not count:
            break
        total += count
        source = Source(new, path)
        found = check(source, selection)
    return source.text, found, total


def _write(path: str, data: bytes, text: str) -> None:
    """Write a file's new text in its old encoding, all of it or nothing."""
    new = _encoded(data, text)
    if not os.access(path, os.W_OK):
        # Another file in its place would get around that.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    try:
        replace_file(path, new, mode=stat.S_IMODE(Path(path).stat().st_mode), keep_owner=True)
    except OSError as error:
        error.filename = None  # which stands for a file that cannot be read
        raise


def _encoded(data: bytes, text: str) -> bytes:
    import io
    import tokenize

    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return text.encode(encoding)


# ---- several processes --------------------------------------------------------------------------


def check_files(
    paths: Sequence[str], selection: Selection, *, fix: bool = False, jobs: int = 0
) -> Iterator[FileResult]:
    """Yield the results of all files, in their order.

    jobs: processes; 0: as many as processors may be used, if there are files enough.

    Raises WorkerEndedError.
    """
    jobs = jobs or (_processors() if len(paths) > _FEW else 1)
    chunks = [paths[at : at + _CHUNK] for at in range(0, len(paths), _CHUNK)]
    if jobs == 1 or len(chunks) <= 1:
        with _uncollected():
            for path in paths:
                yield check_file(path, selection, fix=fix)
        return
    # Not at the top: most runs are of a few files.
    import multiprocessing
    from concurrent.futures import BrokenExecutor, ProcessPoolExecutor

    context = multiprocessing.get_context("fork")  # spawned ones would import everything again
    pool = ProcessPoolExecutor(min(jobs, len(chunks)), context, _prepare)
    try:
        for results in pool.map(partial(_check_chunk, selection=selection, fix=fix), chunks):
            yield from results
    except BrokenExecutor:
        raise WorkerEndedError from None
    finally:
        # After Ctrl-C nobody waits for what has not begun.
        pool.shutdown(cancel_futures=True)


def _processors() -> int:
    """As many as may be used; where that is not to be had (macOS), as many as there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _check_chunk(paths: Sequence[str], *, selection: Selection, fix: bool) -> list[FileResult]:
    """What a worker process does with its files."""
    return [check_file(path, selection, fix=fix) for path in paths]


def _prepare() -> None:
    """In a worker process: no collections, and Ctrl-C is the parent's to handle."""
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _uncollected() -> Iterator[None]:
    """No collections in this process: trees are large, and nothing that is made here is a cycle."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
