"""Primitives that nobody else wants."""
