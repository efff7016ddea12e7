"""A demonstration; its cases are those of testserver."""
