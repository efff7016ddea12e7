"""How much memory processes share, which pages are private, and why."""
