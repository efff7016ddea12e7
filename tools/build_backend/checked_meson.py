"""The build back end (PEP 517): meson-python, behind a check of what it compiles with.

Where a compiler or Python.h is missing, meson prints dozens of lines, one of which says it.  pip
shows what a hook prints: here it is that one line, and it comes before anything is compiled.
"""

import sys

# pip looks at requires-python when this file has answered, which an old Python cannot even import.
if sys.version_info < (3, 11):  # noqa: UP036  # see above
    version = ".".join(map(str, sys.version_info[:3]))
    sys.exit(f"cpythonplus needs Python 3.11 or later; this is {version}")

import functools
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

import mesonpy

P = ParamSpec("P")
T = TypeVar("T")

_COMPILERS = ("cc", "gcc", "clang")
_GET_COMPILER = (
    "Debian, Ubuntu: apt-get install gcc libc6-dev; Fedora: dnf install gcc; "
    "Alpine: apk add gcc musl-dev"
)
_GET_HEADERS = (
    "Debian, Ubuntu: apt-get install python3-dev; Fedora: dnf install python3-devel; "
    "Alpine: apk add python3-dev"
)


def _compiler() -> list[str]:
    """Return the command that meson will take; empty where there is none."""
    names = [shlex.split(os.environ["CC"])] if os.environ.get("CC") else [[n] for n in _COMPILERS]
    return next((name for name in names if shutil.which(name[0])), [])


def _finds(compiler: Sequence[str], header: str, *options: str) -> bool:
    """Whether the preprocessor finds a header and all that it includes."""
    done = subprocess.run(
        [*compiler, *options, "-E", "-x", "c", "-"],
        input=f"#include <{header}>\n",
        text=True,
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def missing() -> str | None:
    """Return what is missing to compile an extension, and how to get it; None if nothing is."""
    compiler = _compiler()
    if not compiler:
        wanted = os.environ.get("CC") or ", ".join(_COMPILERS)
        return f"no C compiler was found (looked for {wanted}). {_GET_COMPILER}"
    if not _finds(compiler, "stdio.h"):
        return f"{compiler[0]} does not find the C library's headers. {_GET_COMPILER}"
    folders = dict.fromkeys(sysconfig.get_path(name) for name in ("include", "platinclude"))
    if not _finds(compiler, "Python.h", *(f"-I{folder}" for folder in folders)):
        version = ".".join(map(str, sys.version_info[:2]))
        return f"Python.h of {version} was not found in {' or '.join(folders)}. {_GET_HEADERS}"
    return None


def _checked(hook: Callable[P, T]) -> Callable[P, T]:
    """Return the hook, which ends with one line where something is missing."""

    @functools.wraps(hook)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        settings = repr((args, kwargs))
        # Elsewhere nothing is compiled; a file of settings for meson may name other compilers.
        is_ours = sys.platform == "linux" and not re.search("--(native|cross)-file", settings)
        if is_ours and (message := missing()):
            sys.exit(f"cpythonplus cannot be built: {message}")
        return hook(*args, **kwargs)

    return checked


# pip asks these first, before it downloads anything but meson-python; without build isolation it
# begins with the others.
get_requires_for_build_editable = _checked(mesonpy.get_requires_for_build_editable)
get_requires_for_build_sdist = _checked(mesonpy.get_requires_for_build_sdist)
get_requires_for_build_wheel = _checked(mesonpy.get_requires_for_build_wheel)
build_editable = _checked(mesonpy.build_editable)
build_sdist = _checked(mesonpy.build_sdist)
build_wheel = _checked(mesonpy.build_wheel)
