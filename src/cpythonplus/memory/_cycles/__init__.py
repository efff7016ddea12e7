"""The parts of `memory.cycles`: they find garbage, key it, name its causes and report them."""
