"""The answer to one request, made inside the process that is looked at.

Called by the agent's C half with the GIL, in a thread that is not Python's own.  Nothing that is
sent can be executed: a request is one of the names that are registered.
"""

import json

from cpythonplus.memory._agent.examining import problem
from cpythonplus.memory._report.registry import taken

__all__ = ["answer"]


def answer(name: str, argument: str) -> tuple[bool, bytes]:
    """Return (whether it failed, the answer as JSON); raises nothing."""
    try:
        return False, json.dumps(taken(name, argument)).encode()
    except BaseException as error:  # noqa: BLE001  # the thread ends with the client, not with it
        return True, json.dumps({"error": problem(error)}).encode()
