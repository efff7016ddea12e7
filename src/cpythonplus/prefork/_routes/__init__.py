"""Which route holds the GIL, waits for it, computes and blocks others."""
