"""Django: requests, templates, the database on SQLite in memory, signals, forms, commands."""

import io
import logging
from typing import NoReturn

import django
from django.conf import settings

settings.configure(
    SECRET_KEY="no secret",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF="survey.drivers.django",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"],
    MIDDLEWARE=[
        "django.middleware.security.SecurityMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "OPTIONS": {
                "loaders": [
                    (
                        "django.template.loaders.locmem.Loader",
                        {
                            "base": "<h1>{% block a %}{% endblock %}</h1>",
                            "page": "{% extends 'base' %}{% block a %}{{ x }}{% endblock %}",
                            "fails": "{{ refuse }}",
                            "no_include": "{% include 'missing' %}",
                        },
                    )
                ]
            },
        }
    ],
    LOGGING_CONFIG=None,
    USE_TZ=True,
)
django.setup()
logging.getLogger("django").addHandler(logging.NullHandler())
logging.getLogger("django").propagate = False

from django import forms, http, template, urls  # noqa: E402
from django.contrib.auth.models import Group, User  # noqa: E402
from django.core import exceptions, management, serializers, signing  # noqa: E402
from django.core.cache import cache  # noqa: E402
from django.core.handlers.wsgi import WSGIHandler  # noqa: E402
from django.core.paginator import EmptyPage, Paginator  # noqa: E402
from django.core.validators import validate_email  # noqa: E402
from django.db import DatabaseError, IntegrityError, connection, transaction  # noqa: E402
from django.dispatch import Signal  # noqa: E402
from django.shortcuts import get_object_or_404, render  # noqa: E402
from django.template import loader  # noqa: E402
from django.test import Client, RequestFactory  # noqa: E402

from survey.drivers.support import fails  # noqa: E402

management.call_command("migrate", verbosity=0)
Group.objects.create(name="taken")

_CLIENT = Client(raise_request_exception=False)
_HANDLER = WSGIHandler()
_FACTORY = RequestFactory()
_SIGNAL = Signal()
_FAILING_SIGNAL = Signal()


def _refuse(*_: object, **__: object) -> NoReturn:
    raise ValueError("refused")


def _index(request: http.HttpRequest) -> http.HttpResponse:
    return http.HttpResponse(request.path)


def _page(request: http.HttpRequest) -> http.HttpResponse:
    return render(request, "page", {"x": 1})


def _missing(_: http.HttpRequest) -> http.HttpResponse:
    raise http.Http404


def _forbidden(_: http.HttpRequest) -> http.HttpResponse:
    raise exceptions.PermissionDenied


def _no_template(request: http.HttpRequest) -> http.HttpResponse:
    return render(request, "missing")


def _failing_template(request: http.HttpRequest) -> http.HttpResponse:
    return render(request, "fails", {"refuse": _refuse})


def _no_object(_: http.HttpRequest) -> http.HttpResponse:
    return http.HttpResponse(str(get_object_or_404(Group, name="nobody")))


def _stream(_: http.HttpRequest) -> http.StreamingHttpResponse:
    return http.StreamingHttpResponse(iter([b"a", b"b"]))


async def _asynchronous(_: http.HttpRequest) -> http.HttpResponse:
    return http.HttpResponse("fine")


async def _failing_asynchronously(_: http.HttpRequest) -> http.HttpResponse:
    raise ValueError("refused")


urlpatterns = [
    urls.path("", _index, name="index"),
    urls.path("item/<int:n>", _index, name="item"),
    urls.path("page", _page),
    urls.path("refuse", _refuse),
    urls.path("missing", _missing),
    urls.path("forbidden", _forbidden),
    urls.path("no-template", _no_template),
    urls.path("failing-template", _failing_template),
    urls.path("no-object", _no_object),
    urls.path("stream", _stream),
    urls.path("async", _asynchronous),
    urls.path("failing-async", _failing_asynchronously),
]


class _Form(forms.Form):
    name = forms.CharField(max_length=5)
    mail = forms.EmailField()
    number = forms.IntegerField(min_value=3)


class _GroupForm(forms.ModelForm):
    class Meta:
        """Of the group's name only."""

        model = Group
        fields = ("name",)


def _receive(sender: object, **_: object) -> None:
    pass


_SIGNAL.connect(_receive)
_FAILING_SIGNAL.connect(_refuse)


def _request(path: str) -> None:
    """As a server calls it."""
    answer = _HANDLER(_FACTORY.get(path).environ, lambda _status, _headers: None)
    list(answer)
    answer.close()


def request() -> None:
    _request("/")


def request_with_template() -> None:
    _request("/page")


def request_by_the_test_client() -> None:
    _CLIENT.get("/")


def post() -> None:
    _CLIENT.post("/", {"a": "b", "f": io.BytesIO(b"x")})


def stream() -> None:
    b"".join(_CLIENT.get("/stream").streaming_content)


def asynchronous_view() -> None:
    _CLIENT.get("/async")


def render_template() -> None:
    loader.get_template("page").render({"x": 1})


def compile_template() -> None:
    source = "{% for x in y %}{% if x %}{{ x|upper }}{% endif %}{% endfor %}"
    template.Template(source).render(template.Context({"y": "ab"}))


def query() -> None:
    list(Group.objects.filter(name__startswith="t").order_by("id").values("name"))
    list(Group.objects.prefetch_related("permissions"))


def get_object() -> None:
    Group.objects.get(name="taken")


def save_and_delete() -> None:
    group = Group(name="new")
    group.save()
    group.delete()


def atomic() -> None:
    with transaction.atomic(), transaction.atomic():
        Group.objects.count()


def raw_sql() -> None:
    with connection.cursor() as cursor:
        cursor.execute("select 1")
        cursor.fetchall()


def send_signal() -> None:
    _SIGNAL.send(sender=None)


def valid_form() -> None:
    _Form({"name": "x", "mail": "a@example.org", "number": "4"}).is_valid()


def render_form() -> None:
    _Form().as_p()


def model_form() -> None:
    _GroupForm({"name": "other"}).is_valid()


def caching() -> None:
    cache.set("a", 1)
    cache.get("a")


def serialize() -> None:
    list(serializers.deserialize("json", serializers.serialize("json", Group.objects.all())))


def reverse() -> None:
    urls.reverse("item", args=[3])
    urls.resolve("/item/3")


def command() -> None:
    management.call_command("check", stdout=io.StringIO())


def paginate() -> None:
    Paginator([1, 2, 3], 2).page(1)


def refused() -> None:
    _request("/refuse")


def refused_to_the_test_client() -> None:
    _CLIENT.get("/refuse")


def refused_in_a_test() -> None:
    fails(ValueError, lambda: Client().get("/refuse"))


def refused_with_debug() -> None:
    settings.DEBUG = True
    try:
        _request("/refuse")
    finally:
        settings.DEBUG = False


def missing_page() -> None:
    _request("/none")


def missing_page_by_view() -> None:
    _request("/missing")


def missing_object() -> None:
    _request("/no-object")


def forbidden() -> None:
    _request("/forbidden")


def missing_template() -> None:
    _request("/no-template")


def failing_template() -> None:
    _request("/failing-template")


def failing_asynchronous_view() -> None:
    _CLIENT.get("/failing-async")


def no_token() -> None:
    Client(enforce_csrf_checks=True).post("/", {})


def missing_template_without_a_request() -> None:
    fails(template.TemplateDoesNotExist, lambda: loader.get_template("missing"))


def missing_templates() -> None:
    fails(template.TemplateDoesNotExist, lambda: loader.select_template(["missing", "gone"]))


def missing_include() -> None:
    fails(template.TemplateDoesNotExist, lambda: loader.get_template("no_include").render({}))


def wrong_template() -> None:
    fails(template.TemplateSyntaxError, lambda: template.Template("{% if %}"))


def undefined_variable() -> None:
    template.Template("{{ x.y.z }}{{ x|length }}").render(template.Context({"x": 1}))


def failing_variable() -> None:
    context = template.Context({"refuse": _refuse})
    fails(ValueError, lambda: template.Template("{{ refuse }}").render(context))


def no_object() -> None:
    fails(exceptions.ObjectDoesNotExist, lambda: Group.objects.get(name="nobody"))


def no_such_field() -> None:
    fails(exceptions.FieldError, lambda: Group.objects.filter(nothing=1))


def duplicate() -> None:
    def work() -> None:
        with transaction.atomic():
            Group.objects.create(name="taken")

    fails(IntegrityError, work)


def duplicate_get_or_create() -> None:
    Group.objects.get_or_create(name="taken")
    fails(IntegrityError, lambda: Group.objects.get_or_create(id=1000, defaults={"name": "taken"}))


def rolled_back() -> None:
    def work() -> None:
        with transaction.atomic():
            Group.objects.count()
            _refuse()

    fails(ValueError, work)


def wrong_sql() -> None:
    def work() -> None:
        with connection.cursor() as cursor:
            cursor.execute("select from")

    fails(DatabaseError, work)


def failing_receiver() -> None:
    fails(ValueError, lambda: _FAILING_SIGNAL.send(sender=None))


def failing_receiver_robustly() -> None:
    _FAILING_SIGNAL.send_robust(sender=None)


def invalid_form() -> None:
    form = _Form({"name": "too long", "mail": "nobody", "number": "1"})
    assert form.errors.as_json()


def invalid_model_form() -> None:
    assert _GroupForm({"name": "taken"}).errors


def invalid_model() -> None:
    fails(exceptions.ValidationError, lambda: User(username="a b").full_clean())


def invalid_value() -> None:
    fails(exceptions.ValidationError, lambda: validate_email("nobody"))


def cannot_reverse() -> None:
    fails(urls.NoReverseMatch, lambda: urls.reverse("missing"))


def cannot_resolve() -> None:
    fails(urls.Resolver404, lambda: urls.resolve("/none"))


def bad_signature() -> None:
    fails(signing.BadSignature, lambda: signing.loads("nothing"))


def cannot_deserialize() -> None:
    fails(
        serializers.base.DeserializationError,
        lambda: list(serializers.deserialize("json", '[{"model": "no.such"}]')),
    )


def no_such_command() -> None:
    fails(management.CommandError, lambda: management.call_command("no_such_command"))


def wrong_command_option() -> None:
    fails((management.CommandError, TypeError), lambda: management.call_command("check", no=1))


def no_such_page() -> None:
    fails(EmptyPage, lambda: Paginator([1], 2).page(5))


ORDINARY = [
    request,
    request_with_template,
    request_by_the_test_client,
    post,
    stream,
    asynchronous_view,
    render_template,
    compile_template,
    query,
    get_object,
    save_and_delete,
    atomic,
    raw_sql,
    send_signal,
    valid_form,
    render_form,
    model_form,
    caching,
    serialize,
    reverse,
    command,
    paginate,
]
ERRORS = [
    refused,
    refused_to_the_test_client,
    refused_in_a_test,
    refused_with_debug,
    missing_page,
    missing_page_by_view,
    missing_object,
    forbidden,
    missing_template,
    failing_template,
    failing_asynchronous_view,
    no_token,
    missing_template_without_a_request,
    missing_templates,
    missing_include,
    wrong_template,
    undefined_variable,
    failing_variable,
    no_object,
    no_such_field,
    duplicate,
    duplicate_get_or_create,
    rolled_back,
    wrong_sql,
    failing_receiver,
    failing_receiver_robustly,
    invalid_form,
    invalid_model_form,
    invalid_model,
    invalid_value,
    cannot_reverse,
    cannot_resolve,
    bad_signature,
    cannot_deserialize,
    no_such_command,
    wrong_command_option,
    no_such_page,
]
