"""What waiting for another thread costs: `cpythonplus bench threads`."""
