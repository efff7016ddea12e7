"""Figures, tables and names as text."""
