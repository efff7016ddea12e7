"""A body of nested arrays that is invalid leaves the inner ones behind."""

import msgpack

BODY = bytes([0x91] * 20 + [0xC1])


def tick(number):
    try:
        msgpack.unpackb(BODY)
    except (msgpack.FormatError, ValueError):
        return


PER_SECOND = 1000
