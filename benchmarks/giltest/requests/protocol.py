"""What client and server of this scenario say to each other: single bytes."""

REQUEST = ANSWER = b"x"
"""On the connections with requests. Answers come in the order of the requests."""

READY = b"r"
"""On the control connection, from the server: all threads run."""
BEGIN = b"b"
"""There, from the client: what is measured begins."""
END = b"e"
"""There, from the client: it is over."""
NOTED = b"n"
"""There, from the server: what was used up to the end is noted, the connections may be closed."""
