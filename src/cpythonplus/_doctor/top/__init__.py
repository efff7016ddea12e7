"""The view of running processes by thread: `cpythonplus top`."""
