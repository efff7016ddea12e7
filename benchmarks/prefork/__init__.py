"""A preforking server with a large heap: what its workers share, and how they end."""
