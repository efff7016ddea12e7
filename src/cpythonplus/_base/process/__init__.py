"""This process: forks, clocks, futexes and threads in C."""
