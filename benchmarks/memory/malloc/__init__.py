"""A script of anybody's under several allocators; a command of its own."""
