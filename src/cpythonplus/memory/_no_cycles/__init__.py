"""The parts of the plugin behind `pytest --no-cycles`."""
