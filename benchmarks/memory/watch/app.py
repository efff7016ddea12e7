"""A small Flask application: a page, a document, and a view that fails."""

from flask import Flask, Response, jsonify, render_template_string, request

_PAGE = (
    "<h1>{{ title }}</h1><ul>{% for line in lines %}<li>{{ line | upper }}</li>{% endfor %}</ul>"
)
_LINES = [f"line {number}" for number in range(20)]

app = Flask(__name__)


class NotInStockError(Exception):
    """What the failing view raises."""


@app.get("/page/<name>")
def page(name: str) -> str:
    """Answer with a page."""
    return render_template_string(_PAGE, title=name, lines=_LINES)


@app.post("/echo")
def echo() -> Response:
    """Answer with the document that was sent."""
    return jsonify(request.get_json())


@app.get("/order/<int:number>")
def order(number: int) -> str:
    """Fail, a few calls deep."""
    return _reserve(number, 3)


def _reserve(number: int, depth: int) -> str:
    if depth:
        return _reserve(number, depth - 1)
    raise NotInStockError(number)


@app.errorhandler(NotInStockError)
def not_in_stock(error: NotInStockError) -> tuple[str, int]:
    """Answer for the view that failed."""
    return f"not in stock: {error}", 409
