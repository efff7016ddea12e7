"""Stackless Python's module: `import cpythonplus.stackless as stackless`.

The names of `cpythonplus.tasklets`, under the name that programs for Stackless Python know.
"""

from cpythonplus.tasklets import *  # noqa: F403
from cpythonplus.tasklets import __getattr__  # noqa: F401  # the computed attributes
