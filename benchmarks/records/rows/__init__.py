"""Rows: their bytes, their speed, very many of them."""
