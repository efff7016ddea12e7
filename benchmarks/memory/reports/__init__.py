"""Leaks that people have reported of well-known packages, rebuilt: which tool names them."""
