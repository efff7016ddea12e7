"""Each minimization is a cycle with arrays in it, which waits for the collector."""

import numpy as np
from scipy.optimize import minimize

DATA = np.arange(30_000.0)


def tick(number):
    x = DATA + number

    def loss(w):
        r = (w[0] * x - 3).mean()
        return r * r, np.array([2 * r * x.mean()])

    minimize(loss, np.array([0.1]), jac=True, method="L-BFGS-B", options={"maxiter": 3})


PER_SECOND = 15
