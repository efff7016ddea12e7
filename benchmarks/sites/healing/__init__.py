"""What breaks between two sites, and how it heals: `python -m benchmarks.sites.healing`."""
