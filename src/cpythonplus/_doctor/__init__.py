"""The doctor: an agent in a live process, what it can be asked, and the words of a report."""
