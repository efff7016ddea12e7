"""Programs as a container may hold them: system calls that are refused, as by a seccomp profile."""

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Mapping, Sequence

import pytest

CALLS: Mapping[str, Mapping[str, int]] = {
    "x86_64": {
        "pipe2": 293,
        "ptrace": 101,
        "perf_event_open": 298,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "membarrier": 324,
        "rseq": 334,
    },
    "aarch64": {
        "pipe2": 59,
        "ptrace": 117,
        "perf_event_open": 241,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "membarrier": 283,
        "rseq": 293,
    },
}
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2
_LOAD_NUMBER, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def refuse(calls: Sequence[str], error: int) -> None:
    """Have these system calls fail with `error` in this process and its children, for good."""
    numbers = [CALLS[platform.machine()][call] for call in calls]
    words = [(_LOAD_NUMBER, 0, 0, 0)]
    words += [(_IF_EQUAL, len(numbers) - index, 0, each) for index, each in enumerate(numbers)]
    words += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ERRNO | error)]
    code = b"".join(struct.pack("HBBI", *word) for word in words)
    libc = ctypes.CDLL(None, use_errno=True)
    program = _Program(len(words), code)
    for arguments in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0),
    ):
        if libc.prctl(*arguments):
            number = ctypes.get_errno()
            raise OSError(number, f"prctl: {os.strerror(number)}")


def command(calls: Sequence[str], error: str, words: Sequence[str]) -> list[str]:
    """Return the command line that runs `words` where `calls` fail with `error`, EPERM or so."""
    if platform.machine() not in CALLS or sys.platform != "linux":
        pytest.skip("no numbers of system calls for this machine")
    return [sys.executable, __file__, ",".join(calls), error, *words]


if __name__ == "__main__":
    refuse(sys.argv[1].split(","), getattr(errno, sys.argv[2]))
    os.execvp(sys.argv[3], sys.argv[3:])
