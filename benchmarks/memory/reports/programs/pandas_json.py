"""`to_json()` keeps what it asks timestamps for."""

import pandas as pd

INDEX = pd.date_range("2019-01-01", "2019-10-01", freq="D", tz="UTC")


def tick(number):
    pd.DataFrame({"a": [12.5] * len(INDEX)}, index=INDEX).reset_index().to_json()


PER_SECOND = 60
