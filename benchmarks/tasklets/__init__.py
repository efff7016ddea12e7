"""What tasklets cost beside greenlet, gevent, asyncio, Go and threads."""
