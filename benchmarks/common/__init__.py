"""What all benchmarks share: child processes, results, percentiles, targets, the report page."""
