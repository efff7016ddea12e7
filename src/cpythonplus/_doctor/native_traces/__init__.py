"""Which native function takes memory and keeps it: memray's tracer, without a restart.

`tracing` runs in the process that is looked at, `reading` in the doctor.
"""
