"""The Flask application: an order, a report that takes longer, and maybe a background job.

An ordinary application that knows nothing of how its GIL is scheduled; gunicorn imports it.
"""

import os
import time

from flask import Flask, Response, render_template

from benchmarks.testserver.answers import answer
from benchmarks.testserver.background import (
    CALIBRATION_VARIABLE,
    CPU_THREADS_VARIABLE,
    WORK_PATH,
    Background,
)

_PAGE = (
    "<h1>Order {{ number }}</h1><ul>"
    "{% for line in lines %}<li>{{ line }}: {{ line | length }}</li>{% endfor %}</ul>"
)

_REPORT = (
    "<table>{% for row in rows %}<tr class={{ loop.cycle('odd', 'even') }}>"
    "{% for cell in row.items() %}<td>{{ cell[0] }}: {{ cell[1] }}</td>{% endfor %}"
    "</tr>{% endfor %}</table>"
)

app = Flask(__name__)
# Compiled once, as a template in a file would be.
page = app.jinja_env.from_string(_PAGE)
table = app.jinja_env.from_string(_REPORT)
background = Background(
    int(os.environ.get(CPU_THREADS_VARIABLE, "0")),
    float(os.environ.get(CALIBRATION_VARIABLE, "0.3")),
)


@app.get("/orders/<int:number>")
def order(number: int) -> Response:
    """Answer with a document and the page made of it."""
    text = render_template(page, number=number, lines=["pens", "paper", "<ink>", "stamps"])
    return Response(answer(number) + text.encode(), mimetype="text/plain")


@app.get("/reports/<int:number>")
def report(number: int) -> str:
    """Answer with a table of 450 rows: some milliseconds of Python, mostly in the template."""
    rows = [{"id": i, "total": i * number % 97 / 4, "name": f"<{i}>"} for i in range(450)]
    return render_template(table, rows=sorted(rows, key=lambda row: row["total"]))


@app.get("/waiting/<int:milliseconds>")
def waiting(milliseconds: int) -> Response:
    """Answer with the order, after waiting as for a database."""
    time.sleep(milliseconds / 1000)
    return order(milliseconds)


@app.get(WORK_PATH)
def work() -> Response:
    """Answer with the background job's progress."""
    return Response(background.progress(), mimetype="application/json")
