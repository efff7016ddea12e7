"""Benchmarks that measure stock and plus in one run, on the same interpreter.

Nothing is imported here: the workers live in this package too, and what they import is part of
what is measured.
"""
