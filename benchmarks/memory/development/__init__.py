"""Tests under `pytest --no-cycles`, and the linter."""
