"""Micro-benchmarks of how the GIL is handed from thread to thread, one folder per scenario."""
