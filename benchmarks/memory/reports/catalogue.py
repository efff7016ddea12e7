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
    packages: none if it is CPython itself that leaks.
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
        "aiohttp_middlewares",
        "aio-libs/aiohttp#9852",
        ("aiohttp==3.10.10",),
        r"aiohttp\.web_app\._build_middlewares",
        r"aiohttp|lru_cache|SystemRoute|middleware",
    ),
    Report(
        "annotated_loggers",
        "github/annotated-logger#83",
        ("annotated-logger==1.2.4",),
        r"logging\.Logger\.manager\.loggerDict",
        r"annotated_logger|Logger",
    ),
    Report(
        "anyio_loops",
        "agronholm/anyio#1203",
        ("anyio==4.14.1",),
        r"anyio\.\S*_run_vars",
        r"anyio|EventLoop|\bTask\b",
    ),
    Report(
        "asgiref_local",
        "django/asgiref#158",
        ("asgiref==3.2.7",),
        r"\bactive\._context_refs",
        r"asgiref|\bLocal\b|_context_refs",
    ),
    Report(
        "boto3_handlers",
        "boto/boto3#2176",
        ("boto3==1.34.0", "botocore==1.34.0"),
        r"shared\._original_handler\._handlers",
        r"boto",
    ),
    Report(
        "cattrs_converters",
        "python-attrs/cattrs#290",
        ("cattrs==22.1.0",),
        r"linecache\.cache",
        r"cattrs|linecache",
    ),
    Report(
        "croniter_expressions",
        "pallets-eco/croniter#195",
        ("croniter==6.0.0",),
        r"croniter\.croniter\.EXPRESSIONS",
        r"croniter",
    ),
    Report(
        "dateparser_settings",
        "scrapinghub/dateparser#1140",
        ("dateparser==1.1.6",),
        r"dateparser\.languages\.dictionary\.Dictionary\._(sorted|split|match)\w+_cache",
        r"dateparser",
    ),
    Report(
        "fsspec_archives",
        "fsspec/filesystem_spec#965",
        ("fsspec==2022.3.0",),
        r"TarFileSystem\._cache",
        r"fsspec|tar",
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
        "marshmallow_dataclass",
        "lovasoa/marshmallow_dataclass#198",
        ("marshmallow_dataclass==8.5.5", "marshmallow==3.15.0", "setuptools<70"),
        r"marshmallow_dataclass\._internal_class_schema",
        r"marshmallow_dataclass|lru_cache",
    ),
    Report(
        "marshmallow_registry",
        "marshmallow-code/marshmallow#732",
        ("marshmallow==3.21.3",),
        r"marshmallow\.class_registry\._registry",
        r"marshmallow|SchemaMeta",
    ),
    Report(
        "mcp_stateless",
        "modelcontextprotocol/python-sdk#756",
        ("mcp==1.10.1", "pydantic==2.11.7"),
        r"\bmcp\._session_manager\._task_group",
        r"mcp|anyio|Task",
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
        "msgspec_builtins",
        "msgspec/msgspec#1175",
        ("msgspec==0.21.1",),
        r"x float \((nothing on the heap refers|held by C code)|from msgspec, called at",
        r"\bfloat\b|msgspec",
        r"msgspec_builtins\.py:\d+",
    ),
    Report(
        "msgspec_raw",
        "msgspec/msgspec#709",
        ("msgspec==0.18.6",),
        r"x bytes \((nothing on the heap refers|held by C code)|from msgspec, called at",
        r"\bbytes\b|msgspec",
        r"msgspec_raw\.py:\d+",
    ),
    Report(
        "multidict_istr",
        "aio-libs/multidict#1131",
        ("multidict==6.3.2",),
        r"x (str|multidict\S*\.istr) \((nothing on the heap refers|held by C code)",
        r"\bi?str\b|multidict",
        r"multidict_\w+\.py:\d+",
    ),
    Report(
        "multidict_pop",
        "aio-libs/multidict#1232",
        ("multidict==6.6.3",),
        r"x (str|multidict\S*\.istr) \((nothing on the heap refers|held by C code)",
        r"\bi?str\b|multidict|C code uses them",
        r"multidict_\w+\.py:\d+",
    ),
    Report(
        "numba_generators",
        "numba/numba#9103",
        ("numba==0.58.1", "numpy==1.26.4"),
        r"x (ctypes\.c_void_p|tuple with ctypes\S+) \(held by C code",
        r"numba|ctypes",
        r"numba_generators\.py:\d+",
    ),
    Report(
        "numba_types",
        "numba/numba#9733",
        ("numba==0.60.0",),
        r"\bfoo\._types_active_call",
        r"numba|Dispatcher",
    ),
    Report(
        "numpy_out",
        "numpy/numpy#29355",
        ("numpy==2.3.0",),
        r"x numpy\.ndarray \((nothing on the heap refers|held by C code)|from numpy, called at",
        r"ndarray|numpy",
        r"numpy_out\.py:\d+",
    ),
    Report(
        "openapi_validator",
        "python-openapi/openapi-spec-validator#523",
        ("openapi-spec-validator==0.8.5",),
        r"SpecValidator\.iter_errors",
        r"openapi_spec_validator|SpecValidator|lru_cache",
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
        "pandas_json",
        "pandas-dev/pandas#62210",
        ("pandas==2.3.2",),
        r"\((nothing on the heap refers|held by C code)|from pandas, called at",
        r"pandas",
        r"pandas/io/json/_json\.py:\d+|pandas_json\.py:\d+",
    ),
    Report(
        "picologging_exceptions",
        "microsoft/picologging#155",
        ("picologging==0.9.1",),
        r"x str \((nothing on the heap refers|held by C code)|from picologging, called at",
        r"\bstr\b|picologging",
        r"picologging_exceptions\.py:\d+",
    ),
    Report(
        "pillow_arrow",
        "python-pillow/Pillow#8950",
        ("pillow==11.2.1",),
        r"from PIL, called at",
        r"PIL|of the C heap, .* is C code's",
        r"PIL/Image\.py:\d+|pillow_arrow\.py:\d+",
    ),
    Report(
        "posthog_clients",
        "mem0ai/mem0#3376",
        ("posthog==7.9.4",),
        r"more threads: [^.]*(posthog|Consumer)",
        r"posthog|Consumer|threads",
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
        "pydantic_generics",
        "pydantic/pydantic#3829",
        ("pydantic==1.9.0",),
        r"pydantic\.generics\._(generic_types_cache|assigned_parameters)",
        r"pydantic|ModelMetaclass",
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
        "pydantic_models",
        "pydantic/pydantic#11100",
        ("pydantic==2.10.3",),
        r"\.models \(dict\) .*_abc_impl",
        r"_abc_impl|pydantic_models\.models|ModelMetaclass",
    ),
    Report(
        "redis_parser",
        "redis/redis-py#2693",
        ("redis==4.5.4", "hiredis==2.2.2"),
        r"(HiredisParser|BaseParser)\.parse_error\(\)",
        r"HiredisParser|hiredis|redis",
        r"redis/asyncio/connection\.py:\d+",
    ),
    Report(
        "scipy_minimize",
        "scipy/scipy#20768",
        ("scipy==1.13.0", "numpy==1.26.4"),
        r"garbage: scipy\.optimize\.\S*ScalarFunction",
        r"scipy|ScalarFunction",
    ),
    Report(
        "sentry_processors",
        "getsentry/sentry-python#6267",
        ("sentry-sdk==2.42.1", "opentelemetry-sdk==1.38.0"),
        r"sentry_sdk\.scope\.global_event_processors",
        r"sentry",
    ),
    Report(
        "sqlalchemy_targets",
        "sqlalchemy/sqlalchemy#13566",
        ("sqlalchemy==2.0.40",),
        r"JoinCondition\._track_overlapping_sync_targets",
        r"sqlalchemy",
    ),
    Report(
        "ssl_sessions",
        "python/cpython#116810",
        (),
        r"from lib(ssl|crypto), called at",
        r"libcrypto|libssl|of the C heap, .* is C code's",
        r"\bssl\.py:\d+",
    ),
    Report(
        "ujson_write",
        "ultrajson/ultrajson#727",
        ("ujson==5.12.0",),
        r"x str \((nothing on the heap refers|held by C code)|from ujson, called at",
        r"\bstr\b|ujson",
        r"ujson_write\.py:\d+",
    ),
    Report(
        "watchdog_moves",
        "gorakhargosh/watchdog#1041",
        ("watchdog==6.0.0",),
        r"_inotify\._moved_from_events",
        r"watchdog|InotifyEvent",
    ),
)
