"""FastAPI: a lifespan, a dependency, a model, and an endpoint that runs in a thread."""

import asyncio
import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

from fastapi import Depends, FastAPI
from pydantic import BaseModel

state = {}


def note(what):
    with Path("lifespan.txt").open("a") as file:
        file.write(f"{what} {os.getpid()}\n")


@asynccontextmanager
async def lifespan(app):
    state["loop"] = asyncio.get_running_loop()
    note("up")
    yield
    note("down")


class Answer(BaseModel):
    pid: int
    right: bool


def same_loop():
    return state["loop"].is_running()


app = FastAPI(lifespan=lifespan)


@app.get("/")
def answer(running: Annotated[bool, Depends(same_loop)]) -> Answer:
    return Answer(pid=os.getpid(), right=running)
