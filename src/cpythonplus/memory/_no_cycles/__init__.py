"""`pytest --no-cycles`: what the plugin consists of once it is switched on."""
