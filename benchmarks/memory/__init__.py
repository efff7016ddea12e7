"""What looking into memory costs, and what it tells."""
