"""The common part of keygen and rotate: keys in the site file, and errors as one line each."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from cpythonplus_sites.keys import KeyFormatError
from cpythonplus_sites.machine import ProgramError
from cpythonplus_sites.secrets import SecretError
from cpythonplus_sites.site_file import write_keys
from cpythonplus_sites.terminal import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from cpythonplus_sites.editing import Value


def change_keys(
    path: Path,
    site: str,
    values: Mapping[str, str | None],
    *,
    revision: int | None = None,
    only_try: bool = False,
) -> None:
    """Set keys of a site in the file, all or none; the value None removes a key.

    revision: also set the file's revision, because its contents are those of an earlier file.
    """
    changes: dict[str, Value] = {f"sites.{site}.{key}": value for key, value in values.items()}
    if revision is not None:
        changes["network.revision"] = revision
    write_keys(path, changes, only_try=only_try)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn errors of keys, files and programs into a UsageError with one line."""
    try:
        yield
    except (SecretError, KeyFormatError, ProgramError) as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise UsageError(f"{where}{error.strerror or error}") from None
