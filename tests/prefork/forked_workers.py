"""Programs that fork workers with a board; for the tests of the board, the turn and the metrics."""

from textwrap import dedent

from tests.support import Child, run_child

PREAMBLE = """
import ctypes, os, signal, sys, time, traceback
from cpythonplus.prefork._board import board as boards
from cpythonplus.prefork._limits import endings
from cpythonplus.prefork._board.board import Board


PR_SET_PDEATHSIG = 1


class Worker:
    '''A forked process that runs body(worker).'''

    def __init__(self, body):
        self._said, told = os.pipe()
        asked, self._ask = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid:
            os.close(told)
            os.close(asked)
            return
        # A master that fails leaves nobody behind, who would keep its pipes open.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
        self._told, self._asked = told, asked
        try:
            body(self)
        except SystemExit as end:
            os._exit(end.code)
        except BaseException:
            traceback.print_exc()
            os._exit(99)
        os._exit(0)

    # In the worker.
    def say(self, byte=b'.'):
        os.write(self._told, byte)

    def wait(self):
        assert os.read(self._asked, 1) == b'g'

    # In the master.
    def said(self):
        return os.read(self._said, 1)

    def go_on(self):
        os.write(self._ask, b'g')

    def end(self, with_signal=None):
        '''Return its wait status.'''
        if with_signal is not None:
            os.kill(self.pid, with_signal)
        return os.waitpid(self.pid, 0)[1]


def row(board, pid):
    return next(r for r in board.snapshot().workers if r.pid == pid)


def restarts(board):
    return {reason: n for reason, n in board.snapshot().restarts.items() if n}


def at_call(number, function, action):
    '''Run function(), with action() at the `number`th call in the board's files.

    That is where the interpreter runs signal handlers: as a function of Python begins, and as one
    of C has returned.  Returns how many calls there were.
    '''
    calls = 0

    def profile(frame, event, arg):
        nonlocal calls
        ours = frame.f_code.co_filename.endswith(('board.py', 'records.py'))
        # From 3.14 on a with statement calls in plain sight what it enters. A handler that raises
        # right then leaves any lock held, in every program: the interpreter's affair (bpo-29988).
        entering = getattr(arg, '__name__', '') == '__enter__'
        if ours and event in ('call', 'c_return') and not entering:
            calls += 1
            if calls == number:
                action()

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


# These change nothing: being killed there is being killed where they are called.
READING = {'of', 'take', 'words', 'read', 'slot_of', 'sequence', '_copy', '_check', '_code'}


def at_line(number, function, action, skip=()):
    '''Run function(), with action() before its line `number` in the board's files is executed.

    skip: names of functions whose lines are not counted.  Returns how many lines it executed.
    '''
    lines = 0

    def trace(frame, event, arg):
        nonlocal lines
        if not frame.f_code.co_filename.endswith(('board.py', 'records.py')):
            return None
        if frame.f_code.co_name in skip or (skip and frame.f_code.co_name[0] == '<'):
            return None
        if event == 'line':
            lines += 1
            if lines == number:
                action()
        return trace

    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(None)
    return lines
"""


def run_program(code: str, *, timeout: float = 60) -> Child:
    """Run `code`, which may use what is in PREAMBLE, in a process of its own; it must succeed."""
    return run_child(PREAMBLE + dedent(code), timeout=timeout)
