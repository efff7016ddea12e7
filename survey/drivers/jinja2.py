"""jinja2: compiling, rendering, and what templates do wrong."""

import asyncio

import jinja2
from jinja2 import sandbox

from survey.drivers.support import awaits_failing, fails

_LOOP = asyncio.new_event_loop()
_PAGES = {
    "base": "<h1>{% block title %}{% endblock %}</h1>",
    "page": "{% extends 'base' %}{% block title %}{{ super() }}{{ title }}{% endblock %}",
    "list": "{% for x in items recursive %}{{ x.n }}{{ loop(x.sub) }}{% endfor %}",
    "macro": "{% macro m(a) %}{{ a }}{{ caller() }}{% endmacro %}{% call m(1) %}x{% endcall %}",
    "include": "{% include 'base' %}{% import 'macro' as m %}{{ m.m }}",
    "filters": "{{ items | map('upper') | join(', ') }}{{ items | groupby('0') | length }}",
    "fails": "{{ refuse() }}",
    "fails_within": "{% include 'fails' %}",
    "undefined": "{{ missing.attribute }}",
    "no_include": "{% include 'missing' %}",
    "no_parent": "{% extends 'missing' %}",
    "bad_filter": "{{ 1.5 | round(0, 'sideways') }}",
    "wrong": "{% if %}",
    "unknown": "{{ 1 | no_such_filter }}",
}


def _refuse() -> object:
    raise ValueError("refused")


_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.DictLoader(_PAGES), undefined=jinja2.StrictUndefined, autoescape=True
)
_ASYNCHRONOUS = jinja2.Environment(
    loader=jinja2.DictLoader(_PAGES), enable_async=True, autoescape=True
)
_SANDBOX = sandbox.SandboxedEnvironment(autoescape=True)
_TREE = [{"n": 1, "sub": [{"n": 2, "sub": []}]}]


def _render(name: str, **variables: object) -> str:
    return _ENVIRONMENT.get_template(name).render(**variables)


def compile_template() -> None:
    _ENVIRONMENT.from_string("{{ x }}{% for y in z %}{{ y }}{% endfor %}").render(x=1, z=[2])


def inherit() -> None:
    _render("page", title="x")


def recursive_loop() -> None:
    _render("list", items=_TREE)


def macro() -> None:
    _render("macro")


def include() -> None:
    _render("include")


def filters() -> None:
    _render("filters", items=["a", "b"])


def stream() -> None:
    list(_ENVIRONMENT.get_template("page").stream(title="x"))


def module() -> None:
    str(_ENVIRONMENT.get_template("base").module)


def asynchronous() -> None:
    _LOOP.run_until_complete(_ASYNCHRONOUS.get_template("list").render_async(items=_TREE))


def new_environment() -> None:
    jinja2.Environment(autoescape=True).from_string("{{ x }}").render(x=1)


def failing_call() -> None:
    fails(ValueError, lambda: _render("fails", refuse=_refuse))


def failing_include() -> None:
    fails(ValueError, lambda: _render("fails_within", refuse=_refuse))


def failing_call_asynchronously() -> None:
    template = _ASYNCHRONOUS.get_template("fails")
    _LOOP.run_until_complete(awaits_failing(ValueError, template.render_async(refuse=_refuse)))


def failing_stream() -> None:
    template = _ENVIRONMENT.get_template("fails")
    fails(ValueError, lambda: list(template.stream(refuse=_refuse)))


def undefined() -> None:
    fails(jinja2.UndefinedError, lambda: _render("undefined"))


def missing_template() -> None:
    fails(jinja2.TemplateNotFound, lambda: _render("missing"))


def missing_templates() -> None:
    fails(jinja2.TemplatesNotFound, lambda: _ENVIRONMENT.select_template(["missing", "gone"]))


def missing_include() -> None:
    fails(jinja2.TemplateNotFound, lambda: _render("no_include"))


def missing_parent() -> None:
    fails(jinja2.TemplateNotFound, lambda: _render("no_parent"))


def failing_filter() -> None:
    fails(jinja2.TemplateRuntimeError, lambda: _render("bad_filter"))


def wrong_syntax() -> None:
    fails(jinja2.TemplateSyntaxError, lambda: _render("wrong"))


def unknown_filter() -> None:
    fails(jinja2.TemplateAssertionError, lambda: _render("unknown"))


def sandboxed() -> None:
    template = _SANDBOX.from_string("{{ x.__class__.__mro__ }}")
    fails(jinja2.exceptions.SecurityError, lambda: template.render(x=1))


def wrong_expression() -> None:
    fails(jinja2.TemplateSyntaxError, lambda: _ENVIRONMENT.compile_expression("1 +"))


ORDINARY = [
    compile_template,
    inherit,
    recursive_loop,
    macro,
    include,
    filters,
    stream,
    module,
    asynchronous,
    new_environment,
]
ERRORS = [
    failing_call,
    failing_include,
    failing_call_asynchronously,
    failing_stream,
    undefined,
    missing_template,
    missing_templates,
    missing_include,
    missing_parent,
    failing_filter,
    wrong_syntax,
    unknown_filter,
    sandboxed,
    wrong_expression,
]
