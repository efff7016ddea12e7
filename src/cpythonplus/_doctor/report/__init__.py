"""Words and drawings for the results of examinations: as text, as a page, on a live screen.

An examination returns data; only here it gets labels, units and sentences. `_doctor/questions.py`
lists all examinations. Nothing is imported before it is shown: a module that is imported after a
burst of allocations lies in the examined memory.
"""
