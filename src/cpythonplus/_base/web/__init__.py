"""Requests of WSGI and ASGI applications, from outside: their extent and their route."""
