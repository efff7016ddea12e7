"""One file for each command and action: it parses and prints."""
