"""Starlette: a stream of parts, and a background task after each answer."""

import json
import os
from pathlib import Path

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.responses import StreamingResponse
from starlette.routing import Route


def note(pid):
    with Path("tasks.txt").open("a") as file:
        file.write(f"{pid}\n")


async def parts():
    text = json.dumps({"pid": os.getpid()})
    for part in (text[:5], text[5:]):
        yield part


async def answer(request):
    task = BackgroundTask(note, os.getpid())
    return StreamingResponse(parts(), media_type="application/json", background=task)


app = Starlette(routes=[Route("/", answer)])
