"""The help texts of options that `run` and the servers have in common; imports nothing."""

__all__ = ["JOB_SHARE_SHAPE", "JOB_SHARE_TEXT", "POLICY_SHAPE", "POLICY_TEXT"]

JOB_SHARE_TEXT = "least share of the GIL for threads that compute, while they wait"
JOB_SHARE_SHAPE = "PERCENT"
POLICY_TEXT = "scheduler parameters"
POLICY_SHAPE = "KEY=VALUE,..."
