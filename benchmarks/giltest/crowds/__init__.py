"""Many threads that wait and are woken all at once."""
