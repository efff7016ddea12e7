"""A service with three routes, one of which leaks."""
