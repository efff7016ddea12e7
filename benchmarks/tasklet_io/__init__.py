"""Tasklets in the real world: sockets, timers, locks and channels between threads."""
