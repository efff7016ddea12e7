"""Benchmark of tunnels between two sites, with and without a long way between them."""
