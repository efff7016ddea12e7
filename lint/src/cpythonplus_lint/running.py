"""Runs over many files: reads, checks and perhaps fixes them, in one process per processor."""

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
"""The number of files up to which one process is faster than several."""
_NO_MEMORY = "cannot be checked: there is not enough memory"


class WorkerEndedError(Exception):
    """A worker process was killed, perhaps because the system ran out of memory."""


@dataclass(frozen=True, slots=True)
class FileResult:
    """The hits in one file, or those that are left after fixing."""

    path: str
    violations: tuple[Violation, ...] = ()
    lines: tuple[str, ...] = ()
    """The text of the first line of each violation; columns refer to it."""
    problem: Problem | None = None
    fixed: int = 0


def check_file(path: str, selection: Selection, *, fix: bool = False) -> FileResult:
    """Check one file; with `fix`, also write it back with the fixes.

    Every error becomes a Problem of the file, so that the other files are still checked.
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
    """Check standard input; returns also its bytes, with `fix` the fixed ones."""
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
    """Fix until no hit can be fixed; returns the new text, the hits left, and the number fixed."""
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
        # Replacing the file would circumvent its permissions.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    try:
        replace_file(path, new, mode=stat.S_IMODE(Path(path).stat().st_mode), keep_owner=True)
    except OSError as error:
        error.filename = None  # a filename marks a file that cannot be read
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
    # Import here: most runs check a few files, and need no processes.
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
        # After Ctrl-C, chunks that have not begun are not waited for.
        pool.shutdown(cancel_futures=True)


def _processors() -> int:
    """The number of processors that may be used; on macOS, which does not say it, of all."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _check_chunk(paths: Sequence[str], *, selection: Selection, fix: bool) -> list[FileResult]:
    """Check the files of one worker process's chunk."""
    return [check_file(path, selection, fix=fix) for path in paths]


def _prepare() -> None:
    """Prepare a worker process: no garbage collection, and the parent handles Ctrl-C."""
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable garbage collection: trees are large, and no cycles are made here."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
