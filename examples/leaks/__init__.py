"""Small services, each with one known leak: a test bed for `cpythonplus doctor growth`."""
