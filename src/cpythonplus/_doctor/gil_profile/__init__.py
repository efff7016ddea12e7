"""The profile of the GIL: who holds it, and who waits, by Python stack."""
