"""Memory that does not come back."""
