"""Which task or route the growth of a process came with."""
