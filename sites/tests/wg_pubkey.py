"""A stand-in for `wg pubkey`, where the tests run without wireguard-tools: X25519 (RFC 7748).

Not for use: how long it takes depends on the key.
"""

import base64
import sys

PRIME = 2**255 - 19
BASE_POINT = 9
A24 = 121665
BITS = 255


def public_key(private: bytes) -> bytes:
    """The public half of 32 bytes, by the ladder of the RFC's section 5."""
    scalar = int.from_bytes(private, "little") & ~7 & (1 << BITS) - 1 | 1 << 254
    x2, z2, x3, z3, swapped = 1, 0, BASE_POINT, 1, 0
    for bit in range(BITS - 1, -1, -1):
        is_set = scalar >> bit & 1
        if swapped ^ is_set:
            x2, z2, x3, z3 = x3, z3, x2, z2
        swapped = is_set
        plus, minus = x2 + z2, x2 - z2
        square, other = plus * plus % PRIME, minus * minus % PRIME
        one, two = (x3 - z3) * plus % PRIME, (x3 + z3) * minus % PRIME
        difference = square - other
        x3, z3 = (one + two) ** 2 % PRIME, BASE_POINT * (one - two) ** 2 % PRIME
        x2, z2 = square * other % PRIME, difference * (square + A24 * difference) % PRIME
    if swapped:
        x2, z2 = x3, z3
    return (x2 * pow(z2, PRIME - 2, PRIME) % PRIME).to_bytes(32, "little")


def main() -> int:
    if sys.argv[1:] != ["pubkey"]:
        print("there is no wg here, only a stand-in for wg pubkey", file=sys.stderr)
        return 1
    try:
        private = base64.b64decode(sys.stdin.read().strip(), validate=True)
    except ValueError:
        private = b""
    if len(private) != 32:
        print("wg: Key is not the correct length or format", file=sys.stderr)
        return 1
    print(base64.b64encode(public_key(private)).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
