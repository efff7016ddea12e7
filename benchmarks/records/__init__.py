"""Dicts with shared keys, records and compact dicts, beside what else holds rows."""
