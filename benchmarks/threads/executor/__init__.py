"""A thread pool that gets small tasks."""
