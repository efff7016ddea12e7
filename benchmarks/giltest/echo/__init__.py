"""A TCP echo server thread beside CPU-bound threads."""
