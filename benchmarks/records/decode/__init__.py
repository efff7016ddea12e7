"""Rows from JSON."""
