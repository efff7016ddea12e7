"""CPU-bound threads and nothing else."""
