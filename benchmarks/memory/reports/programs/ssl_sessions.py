"""Each look at the session of a TLS connection keeps a copy of it."""

import ssl
from contextlib import suppress

ANONYMOUS = "AECDH-AES256-SHA:@SECLEVEL=0"


def context(protocol):
    made = ssl.SSLContext(protocol)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers(ANONYMOUS)
    return made


SERVER, CLIENT = context(ssl.PROTOCOL_TLS_SERVER), context(ssl.PROTOCOL_TLS_CLIENT)


def tick(number):
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = CLIENT.wrap_bio(back, there), SERVER.wrap_bio(there, back, server_side=True)
    for _ in range(3):
        for end in ends:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    assert ends[0].session is not None  # noqa: S101


PER_SECOND = 250
