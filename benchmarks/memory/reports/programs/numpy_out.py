"""A reduction with `out=` keeps the array that it writes into."""

import numpy as np


def tick(number):
    values = np.ones(1000)
    np.cumsum(values, out=np.empty(1000))


PER_SECOND = 200
