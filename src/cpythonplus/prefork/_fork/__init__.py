"""Steps before a fork and right after it: sharing, closing, cutting, logging and starting anew."""
