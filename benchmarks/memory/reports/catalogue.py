"""The reports: what was reported, with which versions it is rebuilt, and what names it."""

from dataclasses import dataclass

__all__ = ["REPORTS", "Report"]

_GITHUB = "https://github.com/"


@dataclass(frozen=True)
class Report:
    """A leak that somebody has reported in public.

    exact: a pattern of what keeps or makes the memory, as the report's authors found it in the end.
    near: of what leads there: the package, or the class of what is kept.
    line: where C code keeps the memory, the line of Python that has it taken is as good.
    """

    name: str
    report: str
    packages: tuple[str, ...]
    exact: str
    near: str
    line: str = ""

    @property
    def url(self) -> str:
        """Return the address of the report."""
        place, _, number = self.report.partition("#")
        return f"{_GITHUB}{place}/issues/{number}"


REPORTS = (
    Report(
        "adaptix",
        "reagento/adaptix#461",
        ("adaptix==3.0.0b11",),
        r"linecache\.cache",
        r"adaptix|linecache",
    ),
    Report(
        "aiohttp_cookies",
        "aio-libs/aiohttp#11052",
        ("aiohttp==3.12.0",),
        r"\bjar\._cookies",
        r"_cookies|CookieJar|SimpleCookie|aiohttp",
    ),
    Report(
        "hiredis_maps",
        "redis/hiredis-py#175",
        ("hiredis==2.2.3",),
        r"x bytes \((nothing on the heap refers|held by C code)|from hiredis, called at",
        r"\bbytes\b|hiredis",
        r"hiredis_maps\.py:\d+",
    ),
    Report(
        "marshmallow_registry",
        "marshmallow-code/marshmallow#732",
        ("marshmallow==3.21.3",),
        r"marshmallow\.class_registry\._registry",
        r"marshmallow|SchemaMeta",
    ),
    Report(
        "marshmallow_dataclass",
        "lovasoa/marshmallow_dataclass#198",
        ("marshmallow_dataclass==8.5.5", "marshmallow==3.15.0", "setuptools<70"),
        r"marshmallow_dataclass\._internal_class_schema",
        r"marshmallow_dataclass|lru_cache",
    ),
    Report(
        "msgpack_invalid",
        "msgpack/msgpack-python#671",
        ("msgpack==1.1.1",),
        r"x list \(held by C code|from msgpack, called at",
        r"\blist\b|msgpack",
        r"msgpack_invalid\.py:\d+",
    ),
    Report(
        "multidict_istr",
        "aio-libs/multidict#1131",
        ("multidict==6.3.1",),
        r"x (str|multidict\S*\.istr) \((nothing on the heap refers|held by C code)",
        r"\bi?str\b|multidict",
        r"multidict_\w+\.py:\d+",
    ),
    Report(
        "multidict_pop",
        "aio-libs/multidict#1232",
        ("multidict==6.6.3",),
        r"x (str|multidict\S*\.istr) \((nothing on the heap refers|held by C code)",
        r"\bi?str\b|multidict",
        r"multidict_\w+\.py:\d+",
    ),
    Report(
        "opentelemetry_engines",
        "open-telemetry/opentelemetry-python-contrib#1761",
        (
            "opentelemetry-instrumentation-sqlalchemy==0.37b0",
            "opentelemetry-sdk==1.16.0",
            "sqlalchemy==2.0.9",
            "setuptools<70",
        ),
        r"EngineTracer\._remove_event_listener_params",
        r"EngineTracer|opentelemetry|\bEngine\b",
    ),
    Report(
        "pydantic_adapter",
        "pydantic/pydantic#8397",
        ("pydantic==2.5.2",),
        r"from pydantic_core, called at|held by C code",
        r"pydantic|of the C heap, .* is C code's",
        r"_schema_validator\.py:\d+|type_adapter\.py:\d+",
    ),
    Report(
        "pydantic_iterable",
        "pydantic/pydantic#9243",
        ("pydantic==2.7.0",),
        r"(ValidatorIterator|list_iterator) \((held by C code|nothing on the heap refers)",
        r"_iterator|pydantic",
        r"pydantic/main\.py:\d+|pydantic_iterable\.py:\d+",
    ),
    Report(
        "redis_parser",
        "redis/redis-py#2693",
        ("redis==4.5.4", "hiredis==2.2.2"),
        r"(HiredisParser|BaseParser)\.parse_error\(\)",
        r"HiredisParser|hiredis|redis",
        r"redis/asyncio/connection\.py:\d+",
    ),
)
