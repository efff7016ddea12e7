"""Each call with a generator of numpy leaves references to its attributes."""

import numpy as np
from numba import njit

rng = np.random.default_rng(1)


@njit
def draw(generator):
    return generator.random()


draw(rng)


def tick(number):
    for _ in range(10):
        draw(rng)


PER_SECOND = 200
