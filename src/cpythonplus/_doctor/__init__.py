"""The doctor: the agent in a live process, its questions, and the words of a report."""
