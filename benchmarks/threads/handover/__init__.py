"""Two threads that hand a turn to each other."""
