"""A connection's parser and its reader in C refer to each other; the collector does not see it."""

import asyncio

import redis.asyncio

loop = asyncio.new_event_loop()


async def answer(reader, writer):
    while await reader.read(4096):
        writer.write(b"+PONG\r\n")
    writer.close()


server = loop.run_until_complete(asyncio.start_server(answer, "127.0.0.1", 0))
PORT = server.sockets[0].getsockname()[1]


async def request():
    client = redis.asyncio.Redis(port=PORT)
    await client.ping()
    await client.close()


def tick(number):
    loop.run_until_complete(request())


PER_SECOND = 60
