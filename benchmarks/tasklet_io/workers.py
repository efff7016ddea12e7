"""What the workers of this scenario have in common."""

import resource

HOST = "localhost"
"""Whom the certificate is for."""
CHAIN, KEY = "chain.pem", "key.pem"
"""Its files."""

SPARE = 64
"""Descriptors that a process has beside those of its connections."""


def allow_descriptors(connections: int) -> None:
    """Let this process have so many connections at once; ends it with a line when it may not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + SPARE
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise SystemExit(f"{connections} connections need {needed} descriptors, {hard} are allowed")
    if soft != resource.RLIM_INFINITY and needed > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
