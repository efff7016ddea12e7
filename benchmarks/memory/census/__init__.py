"""Counting objects."""
