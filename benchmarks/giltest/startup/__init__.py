"""What `cpythonplus run` adds to the start of an interpreter."""
