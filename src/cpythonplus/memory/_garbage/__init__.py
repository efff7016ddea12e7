"""What a collection finds: cyclic garbage, and what breaks its cycles."""
