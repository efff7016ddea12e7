"""Memory that C code takes and never gives back; Python has no object for it."""

import ctypes

from examples.leaks.service import serve

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]


def tick(number: int) -> None:
    """Call a library that leaks.  LEAK C heap."""
    block = libc.malloc(3000)
    libc.memset(block, number & 0xFF, 3000)


serve(tick)
