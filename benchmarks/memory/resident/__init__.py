"""What `memory.resident()` tells of heaps of known content."""
