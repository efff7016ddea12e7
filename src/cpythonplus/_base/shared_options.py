"""The help texts of options that `run` and the servers have in common; imports nothing."""

JOB_SHARE_TEXT = "least share of the GIL for threads that compute, while they wait"
JOB_SHARE_SHAPE = "PERCENT"
POLICY_TEXT = "scheduler parameters"
POLICY_SHAPE = "KEY=VALUE,..."
