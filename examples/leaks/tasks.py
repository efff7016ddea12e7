"""Tasks that wait for something that never comes."""

import asyncio
import os

running: set[asyncio.Task[None]] = set()  # LEAK __main__.running


async def follow(number: int, never: asyncio.Event) -> None:
    """Wait for an event, with what has been read so far."""
    read = bytearray(1000 + number % 7)
    await never.wait()
    read.clear()


async def main() -> None:
    """Start ever more of them."""
    never = asyncio.Event()
    loop = asyncio.get_running_loop()
    end = loop.time() + float(os.environ.get("LEAK_SECONDS", "30"))
    number = 0
    while loop.time() < end:
        running.add(asyncio.create_task(follow(number, never)))
        number += 1
        await asyncio.sleep(0.003)


asyncio.run(main())
