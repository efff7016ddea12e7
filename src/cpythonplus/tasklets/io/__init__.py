"""Waiting that blocks only the tasklet: sleep, timers, descriptors, sockets, TLS, names."""
