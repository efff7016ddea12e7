"""Single-threaded work: what the scheduling costs a program without threads."""
