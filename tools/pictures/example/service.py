"""The service of the pictures: sessions that stay, and an import whose memory does not come back."""

import itertools
import sys
import time

import shop

for visitor in range(100_000):
    shop.visit(visitor)
shop.import_rows(1_000_000)
print("ready", flush=True)
for visitor in itertools.count(100_000):
    shop.visit(visitor)
    if visitor % 200 == 0:
        time.sleep(0.1)
        if visitor > 1_000_000:  # nobody has ended it
            sys.exit(1)
