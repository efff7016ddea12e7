"""The same work over each package: one file each, with the functions that `protocol` describes."""
