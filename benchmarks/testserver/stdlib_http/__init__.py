"""The threaded HTTP server of the standard library."""
