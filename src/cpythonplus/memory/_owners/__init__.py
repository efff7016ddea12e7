"""The owners of the heap, and the growth between two moments.

A copy of the process, made by `fork()`, finds them. The program is paused while the copy is made.
"""
