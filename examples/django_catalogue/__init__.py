"""A shop's catalogue service: Django and Django REST Framework over a large heap."""
