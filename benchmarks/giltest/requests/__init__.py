"""Requests that compute, which come when they come, beside CPU-bound threads."""
