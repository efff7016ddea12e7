"""Ending the threads of OpenMP before a fork.

An OpenMP runtime keeps a pool of threads for each thread that computes with it.  A child has none
of the pool's threads, but libgomp goes on believing in them: its first parallel region there waits
for ever.  `omp_pause_resource_all(omp_pause_hard)` ends the calling thread's pool, and its next
region begins another one.  So does the child's.

It may be called while other threads compute.  A child has the calling thread only, so no other
pool matters, and none is touched: libgomp has one for each thread that computes, and LLVM's runtime
(libomp, libiomp5) does nothing as long as another thread uses it, since it has fork handlers of its
own.  Called inside of a parallel region, libgomp refuses.

Several runtimes may be loaded, for packages bring copies of their own.  Each is found by its path.
"""

import ctypes
import os
import re
from contextlib import suppress

from cpythonplus.prefork._fork import native_threads

_RUNTIME = re.compile(r"lib(gomp|omp|iomp5)\b.*\.so.*")
_HARD = 2  # omp_pause_hard


def is_openmp(library: str) -> bool:
    """Whether a file of this name is an OpenMP runtime."""
    return _RUNTIME.fullmatch(library) is not None


def pause() -> list[str]:
    """End the calling thread's pool in each runtime that is loaded.

    Returns the paths of the runtimes that cannot do that: those before OpenMP 5.0 (GCC 9, LLVM 9).
    """
    unable = []
    for path in native_threads.loaded_libraries():
        if not is_openmp(os.path.basename(path)):  # noqa: PTH119  # a name, not a file
            continue
        with suppress(OSError):  # its file was replaced or deleted
            runtime = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
            function = getattr(runtime, "omp_pause_resource_all", None)
            if function is None:
                unable.append(path)
                continue
            function(_HARD)
    return unable
