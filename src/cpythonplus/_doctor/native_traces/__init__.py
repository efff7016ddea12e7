"""Finds the native functions that allocate memory and keep it: memray's tracer, without a restart.

`tracing` runs in the examined process, `reading` in the doctor.
"""
