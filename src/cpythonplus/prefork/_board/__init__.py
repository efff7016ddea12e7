"""What the master and the workers of a server tell each other in shared memory."""
