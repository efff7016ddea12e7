"""What `memory.cycles` consists of: garbage is found, keyed, named and told."""
