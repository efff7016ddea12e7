"""The command line, `cpythonplus`: it parses and prints, and the rooms do the work."""
