"""The parser of TOML: the standard library's, and before Python 3.11 the package it came from.

Both have the same source and author, and the same errors; tomli is the only dependency.
"""

from __future__ import annotations

import sys

if sys.version_info >= (3, 11):
    from tomllib import loads
else:
    from tomli import loads

__all__ = ["loads"]
