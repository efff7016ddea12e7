"""The help texts of options that `run` and the servers have in common; imports nothing."""

POLICY_TEXT = "scheduler parameters"
POLICY_SHAPE = "KEY=VALUE,..."
