"""How tests see that nothing stays behind: what the allocators say before and after many calls."""

# A part of a program; it defines leaks(). mallinfo2 sees what C code keeps.
MEASURE = """
import ctypes, gc, os, sys, threading, time

_WANTED = {
    # malloc counts as used what a thread keeps for its next calls, up to seven of each size.
    "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",
    # What it has compiled and does not need any more is given back a thousand pieces at a time.
    "PYTHON_JIT": "0",
}
if any(os.environ.get(name) != value for name, value in _WANTED.items()):
    os.execve(sys.executable, sys.orig_argv, os.environ | _WANTED)


class Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost")]


try:
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = Mallinfo2
except AttributeError:  # another C library
    mallinfo2 = Mallinfo2

# The cache of attribute look-ups keeps names, and fills for some thousand calls.
clear_caches = getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache


def used():
    while threading.active_count() > 1:
        time.sleep(0.001)
    clear_caches()
    gc.collect()
    info = mallinfo2()
    return sys.getallocatedblocks(), info.uordblks + info.hblkhd


def leaks(line, names, times, used=used, spare_bytes=0):
    '''Return (times, blocks, bytes) of a line of code that leaks, else None.

    spare_bytes: what all the calls together may leave in gaps of the C heap, where they are few.
    '''
    code = compile(line, line, "exec")
    for _ in range(4):
        exec(code, names)
    # A cache may fill once, and an arena may grow; what grows each time is a leak.
    blocks = octets = sys.maxsize
    for _ in range(6):
        before = used()
        for _ in range(times):
            exec(code, names)
        after = used()
        blocks, octets = min(blocks, after[0] - before[0]), min(octets, after[1] - before[1])
        # Half of one block a call, and half of what malloc gives at least.
        if blocks <= times // 2 and octets <= times * 16 + spare_bytes:
            return None
    return times, blocks, octets
"""
