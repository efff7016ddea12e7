"""What waiting for another thread costs: `python -m benchmarks threads`."""
