"""NumPy, pandas and pyarrow, over tables that are made when the application is loaded."""

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from flask import Flask

ROWS = 100_000
numbers = np.arange(ROWS, dtype=np.int64)
frame = pd.DataFrame({"group": numbers % 10, "value": numbers, "name": (numbers % 7).astype(str)})
table = pa.Table.from_pandas(frame)
square = np.eye(200) * 2.0

# The libraries' threads exist before the fork, where the application is loaded before it.
product = square @ square
grouped = table.group_by("group").aggregate([("value", "sum")])
sums = frame.groupby("group")["value"].sum().to_dict()

app = Flask(__name__)


@app.get("/")
def answer():
    again = frame.groupby("group")["value"].sum().to_dict()
    names = frame["name"].value_counts().to_dict()
    total = pc.sum(table["value"]).as_py()
    other = table.group_by("group").aggregate([("value", "sum")]).to_pandas()
    right = (
        again == sums
        and sum(names.values()) == ROWS
        and total == ROWS * (ROWS - 1) // 2
        and other.set_index("group")["value_sum"].to_dict() == sums
        and bool((square @ square == product).all())
        and int(numbers.sum()) == total
    )
    return {"pid": os.getpid(), "right": right}
