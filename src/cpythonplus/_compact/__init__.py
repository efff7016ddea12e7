"""Data in less memory: dicts, records, and dicts that share their keys."""
