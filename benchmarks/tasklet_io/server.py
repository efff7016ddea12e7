"""Worker: an echo server over one package. Serves until it is ended.

Parameters: side, fd (listening socket), folder (of the certificate; "" without TLS), connections.
"""

from __future__ import annotations

import socket
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.common import worker
from benchmarks.tasklet_io.sides.protocol import Certificate
from benchmarks.tasklet_io.workers import CHAIN, KEY, allow_descriptors


def main() -> None:
    """Serve."""
    parameters = worker.begin()
    allow_descriptors(parameters["connections"])
    folder = parameters["folder"]
    certificate = Certificate(str(Path(folder) / CHAIN), str(Path(folder) / KEY))
    peer: Any = import_module(f"benchmarks.tasklet_io.sides.over_{parameters['side']}")
    peer.serve(socket.socket(fileno=parameters["fd"]), certificate if folder else None)


if __name__ == "__main__":
    main()
