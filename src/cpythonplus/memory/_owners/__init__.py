"""Who keeps how much of the heap, and what has grown between two moments.

All of it is worked out in a copy of the process, which `fork()` makes: the program stands still for
as long as that takes.
"""
