"""The ends of workers: limits on time and memory, and why a worker ended."""
