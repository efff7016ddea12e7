"""What `memory.cycles.watch()` costs a Flask application."""
