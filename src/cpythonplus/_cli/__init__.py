"""The command line, `cpythonplus`: it parses and prints, and other packages do the work."""
