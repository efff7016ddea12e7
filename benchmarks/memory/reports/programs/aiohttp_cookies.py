"""`filter_cookies()` makes an empty entry for each path that is asked for."""

import asyncio

import aiohttp
from yarl import URL

asyncio.set_event_loop(asyncio.new_event_loop())
jar = aiohttp.CookieJar(loop=asyncio.get_event_loop())
jar.update_cookies({"session": "value; Path=/"}, URL("http://shop.example/"))


def tick(number):
    jar.filter_cookies(URL(f"http://shop.example/orders/{number}/lines"))


PER_SECOND = 1000
