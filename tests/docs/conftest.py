"""What the documentation's examples get from pytest."""

from tests.servers import postgres_server, redis_server

__all__ = ["postgres_server", "redis_server"]
