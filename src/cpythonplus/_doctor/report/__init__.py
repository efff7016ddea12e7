"""Wording and drawing what examinations found: as text, as a page, on a live screen.

An examination returns data; only here it gets labels, units and sentences. `registry` lists them
all. Nothing is imported before something is shown: what is imported after a burst of allocations
lies in the memory that is examined.
"""
