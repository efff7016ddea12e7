"""Each loop's variables keep its root task, and that the loop: a value keeps its weak key."""

import anyio
import anyio.to_thread


def tick(number):
    anyio.run(main, number)


async def main(number):
    await anyio.to_thread.run_sync(lambda: None)
    return [f"{number}:{n}" for n in range(200)]


PER_SECOND = 40
