"""The help texts of options that `run` and the servers have in common; imports nothing."""

__all__ = ["POLICY_SHAPE", "POLICY_TEXT"]

POLICY_TEXT = "scheduler parameters"
POLICY_SHAPE = "KEY=VALUE,..."
