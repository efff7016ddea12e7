"""Tasklets, generators and functions as pickles and copies."""
