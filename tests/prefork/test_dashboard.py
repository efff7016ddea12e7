"""The dashboard for Grafana asks only for metrics that there are, and its panels have places."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cpythonplus.prefork._board.board import Board
from cpythonplus.prefork._board.metrics import render

Dashboard = dict[str, Any]
FILE = Path(__file__).resolve().parents[2] / "examples" / "grafana" / "serve.json"
COLUMNS = 24


@pytest.fixture(scope="module")
def dashboard() -> Dashboard:
    return json.loads(FILE.read_text())  # type: ignore[no-any-return]


def queries(dashboard: Dashboard) -> list[str]:
    panels = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    variables = dashboard["templating"]["list"]
    return panels + [each["query"]["query"] for each in variables if each["type"] == "query"]


def test_each_metric_exists_with_its_labels(dashboard: Dashboard) -> None:
    text = render(Board(1), master_pid=0)
    kinds = dict(re.findall(r"^# TYPE (cpythonplus_\w+) (\w+)$", text, re.MULTILINE))
    for query in queries(dashboard):
        names = re.findall(r"cpythonplus_\w+", query)
        assert names
        for name in names:
            # A counter is shown by its rate, a gauge as it is.
            is_rate = re.search(rf"(rate|increase)\({name}", query) is not None
            assert kinds[name] == ("counter" if is_rate else "gauge"), query


def test_the_panels_have_places_of_their_own(dashboard: Dashboard) -> None:
    panels = dashboard["panels"]
    assert [panel["id"] for panel in panels] == [*range(1, len(panels) + 1)]
    places = sorted(
        (at["y"], at["x"], at["w"], at["h"]) for at in (panel["gridPos"] for panel in panels)
    )
    assert all(x + width <= COLUMNS for _, x, width, _ in places)
    for (y, x, width, height), (next_y, next_x, _, _) in pairwise(places):
        assert next_y >= y + height or next_x >= x + width
    assert all(
        len({t["refId"] for t in panel["targets"]}) == len(panel["targets"]) for panel in panels
    )
