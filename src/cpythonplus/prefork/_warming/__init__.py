"""Using an application before the fork: WSGI, ASGI and aiohttp."""
