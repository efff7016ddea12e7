"""The cache of middlewares has an entry for each request to a path that does not exist."""

import asyncio

from aiohttp import web
from aiohttp.test_utils import make_mocked_request


@web.middleware
async def middleware(request, handler):
    try:
        return await handler(request)
    except web.HTTPException as error:
        return web.Response(status=error.status)


APPLICATION = web.Application(middlewares=[middleware])
APPLICATION.freeze()
LOOP = asyncio.new_event_loop()


async def ask(number):
    request = make_mocked_request("GET", f"/missing/{number}", app=APPLICATION)
    request._match_info = None  # noqa: SLF001  # as a server makes it
    await APPLICATION._handle(request)  # noqa: SLF001


def tick(number):
    LOOP.run_until_complete(ask(number))


PER_SECOND = 150
