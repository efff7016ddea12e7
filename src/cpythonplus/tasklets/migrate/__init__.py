"""What a program uses of eventlet and gevent: `python -m cpythonplus.tasklets.migrate PATH`."""
