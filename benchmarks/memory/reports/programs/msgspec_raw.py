"""`Raw.copy()` keeps the bytes that it makes."""

import msgspec

DECODER = msgspec.msgpack.Decoder(type=msgspec.Raw)
ENCODER = msgspec.msgpack.Encoder()


def tick(number):
    raw = DECODER.decode(ENCODER.encode(list(range(number % 50, 3000))))
    raw.copy()


PER_SECOND = 100
