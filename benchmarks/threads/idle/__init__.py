"""Threads that wait and do nothing else."""
