"""What the help says of options that `run` and the servers have in common; imports nothing."""

__all__ = ["POLICY_SHAPE", "POLICY_TEXT"]

POLICY_TEXT = "the scheduler's numbers"
POLICY_SHAPE = "KEY=VALUE,..."
