"""Attributes the growth of a process to tasks and routes."""
