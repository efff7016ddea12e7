"""The answer to one request, made inside the examined process.

The agent's C code calls it with the GIL, in a thread that is not Python's own. A client cannot send
code: a request is one of the registered names.
"""

import sys

_before = len(sys.modules)

import json  # noqa: E402

from cpythonplus._doctor.agent.examining import problem  # noqa: E402
from cpythonplus._doctor.questions import taken  # noqa: E402
from cpythonplus.memory._resident.own import note  # noqa: E402

note(_before)


def answer(name: str, argument: str) -> tuple[bool, bytes]:
    """Return (whether it failed, the answer as JSON); raises nothing."""
    before = len(sys.modules)
    try:
        return False, json.dumps(taken(name, argument)).encode()
    except BaseException as error:  # noqa: BLE001  # the thread ends with the client, not with an answer
        return True, json.dumps({"error": problem(error)}).encode()
    finally:
        note(before)
