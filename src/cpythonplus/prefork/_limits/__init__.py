"""The ends of workers: limits on time and memory, and the reasons of an end."""
