"""Benchmarks of threaded HTTP servers, one folder per server."""
