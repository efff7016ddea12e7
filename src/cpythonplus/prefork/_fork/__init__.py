"""Before a fork and right after it: what is shared, closed, cut, told and begun anew."""
