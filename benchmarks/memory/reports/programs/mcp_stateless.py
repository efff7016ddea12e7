"""Each request to a stateless server leaves tasks that wait for a stream."""

import asyncio

import httpx
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("shop", stateless_http=True, log_level="ERROR")


@mcp.tool()
def price(name: str) -> str:
    return f"{name}: 3"


app = mcp.streamable_http_app()
loop = asyncio.new_event_loop()
client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8000")
running = []
HEADERS = {"Accept": "application/json, text/event-stream"}


async def serve(ready):
    async with mcp.session_manager.run():
        ready.set()
        await asyncio.Event().wait()


async def begin():
    ready = asyncio.Event()
    running.append(asyncio.ensure_future(serve(ready)))
    await ready.wait()


loop.run_until_complete(begin())


def tick(number):
    body = {"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": {}}
    loop.run_until_complete(client.post("/mcp/", json=body, headers=HEADERS))


PER_SECOND = 15
