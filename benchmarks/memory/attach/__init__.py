"""A live process that is looked at."""
