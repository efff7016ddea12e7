"""The service of the pictures: sessions stay, and the memory of an import does not come back."""

import time

import shop  # type: ignore[import-not-found,unused-ignore]  # beside it where it runs

VISITORS, A_BURST, MOST = 100_000, 200, 1_000_000

for visitor in range(VISITORS):
    shop.visit(visitor)
shop.import_rows(1_000_000)
print("ready", flush=True)
for visitor in range(VISITORS, MOST):  # and then it ends, if nobody has ended it
    shop.visit(visitor)
    if visitor % A_BURST == 0:
        time.sleep(0.1)
