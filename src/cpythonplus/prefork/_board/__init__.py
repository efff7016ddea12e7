"""Data that the master and the workers of a server exchange in shared memory."""
