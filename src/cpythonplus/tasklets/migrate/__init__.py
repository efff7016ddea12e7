"""The command `python -m cpythonplus.tasklets.migrate PATH`, for programs on eventlet or gevent."""
