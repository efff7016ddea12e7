"""A tick of each is a request of a service: a file each, which has only what leaks."""
