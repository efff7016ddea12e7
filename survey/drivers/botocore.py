"""botocore: an S3 client against loopback, with credentials that are none."""

import botocore.session
from botocore import UNSIGNED, exceptions
from botocore.client import Config
from botocore.stub import Stubber

from survey.drivers.support import Refused, Server, fails, response

_XML = "Content-Type: application/xml"
_LISTED = b"""<?xml version="1.0"?><ListBucketResult><Name>b</Name><KeyCount>1</KeyCount>
<Contents><Key>k</Key><Size>1</Size></Contents></ListBucketResult>"""
_REFUSED_XML = b"<?xml version='1.0'?><Error><Code>%b</Code><Message>no</Message></Error>"
_ANSWERS: dict[bytes, bytes | None] = {
    b"/bucket": response("200 OK", _LISTED, _XML),
    b"/bucket/key": response("200 OK", b"data"),
    b"/bucket/new": response("200 OK", b"", 'ETag: "x"'),
    b"/bucket/none": response("404 Not Found", _REFUSED_XML % b"NoSuchKey", _XML),
    b"/bucket/busy": response("503 Slow Down", _REFUSED_XML % b"SlowDown", _XML),
    b"/bucket/broken": response("500 Broken", b"<no xml", _XML),
    b"/bucket/short": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nx",
    b"/bucket/drop": b"",
    b"/bucket/slow": None,
}


def _answer(request: bytes) -> bytes | None:
    path = request.split(b" ", 2)[1].partition(b"?")[0]
    return _ANSWERS.get(path, _ANSWERS[b"/bucket"])


_SERVER = Server(_answer)
_REFUSED = Refused()
_SESSION = botocore.session.Session()
_SESSION.set_credentials("nobody", "nothing")


def _client(
    url: str, session: object = _SESSION, **options: object
) -> "botocore.client.BaseClient":
    options = {"retries": {"max_attempts": 0}, "s3": {"addressing_style": "path"}} | options
    options |= {"read_timeout": 0.1}
    return session.create_client(  # type: ignore[attr-defined]
        "s3", region_name="us-east-1", endpoint_url=url, config=Config(**options)
    )


# One client of each kind for all calls, as a service has.
_S3 = _client(_SERVER.url)
_RETRYING = _client(_SERVER.url, retries={"mode": "standard", "max_attempts": 1})
_NOWHERE = _client(_REFUSED.url)
_RETRYING_NOWHERE = _client(_REFUSED.url, retries={"mode": "adaptive", "max_attempts": 1})


def _get(key: str) -> object:
    return _S3.get_object(Bucket="bucket", Key=key)["Body"].read()


def list_objects() -> None:
    _S3.list_objects_v2(Bucket="bucket")


def get_object() -> None:
    _get("key")


def put_object() -> None:
    _S3.put_object(Bucket="bucket", Key="new", Body=b"data")


def paginate() -> None:
    list(_S3.get_paginator("list_objects_v2").paginate(Bucket="bucket"))


def wait() -> None:
    _S3.get_waiter("object_exists").wait(Bucket="bucket", Key="key")


def presign() -> None:
    _S3.generate_presigned_url("get_object", Params={"Bucket": "bucket", "Key": "key"})


def stubbed() -> None:
    with Stubber(_S3) as stub:
        stub.add_response("list_buckets", {"Buckets": []})
        _S3.list_buckets()


def new_client() -> None:
    _client(_SERVER.url)


def new_session() -> None:
    botocore.session.Session()


def missing_key() -> None:
    fails(exceptions.ClientError, lambda: _get("none"))


def missing_key_by_its_class() -> None:
    fails(_S3.exceptions.NoSuchKey, lambda: _get("none"))


def busy() -> None:
    fails(exceptions.ClientError, lambda: _get("busy"))


def busy_with_retries() -> None:
    fails(exceptions.ClientError, lambda: _RETRYING.get_object(Bucket="bucket", Key="busy"))


def broken_answer() -> None:
    fails(Exception, lambda: _get("broken"))


def short_body() -> None:
    fails(Exception, lambda: _get("short"))


def dropped() -> None:
    fails(exceptions.HTTPClientError, lambda: _get("drop"))


def timed_out() -> None:
    fails(exceptions.ReadTimeoutError, lambda: _get("slow"))


def refused() -> None:
    fails(exceptions.EndpointConnectionError, lambda: _NOWHERE.list_buckets())


def refused_with_retries() -> None:
    fails(exceptions.EndpointConnectionError, lambda: _RETRYING_NOWHERE.list_buckets())


def wrong_parameter() -> None:
    fails(exceptions.ParamValidationError, lambda: _S3.get_object(Bucket="bucket", Key=3))


def wrong_bucket() -> None:
    fails(exceptions.ParamValidationError, lambda: _S3.get_object(Bucket="a b", Key="k"))


def no_credentials() -> None:
    session = botocore.session.Session()
    session.register_component("credential_provider", _NoCredentials())
    client = _client(_SERVER.url, session)
    fails(exceptions.NoCredentialsError, lambda: client.list_buckets())


class _NoCredentials:
    def load_credentials(self) -> None:
        """None to be found, wherever this runs."""


def unsigned() -> None:
    client = _client(_SERVER.url, signature_version=UNSIGNED)
    fails(exceptions.ClientError, lambda: client.get_object(Bucket="bucket", Key="none"))


def waited_in_vain() -> None:
    waiter = _S3.get_waiter("object_exists")
    fails(
        exceptions.WaiterError,
        lambda: waiter.wait(
            Bucket="bucket", Key="none", WaiterConfig={"Delay": 0, "MaxAttempts": 2}
        ),
    )


def stubbed_error() -> None:
    with Stubber(_S3) as stub:
        stub.add_client_error("list_buckets", "AccessDenied")
        fails(exceptions.ClientError, lambda: _S3.list_buckets())


def wrongly_stubbed() -> None:
    with Stubber(_S3):
        fails(exceptions.UnStubbedResponseError, lambda: _S3.list_buckets())


def no_such_service() -> None:
    fails(exceptions.UnknownServiceError, lambda: _SESSION.create_client("nothing", "x"))


def no_such_operation() -> None:
    fails(AttributeError, lambda: _S3.nothing())


ORDINARY = [
    list_objects,
    get_object,
    put_object,
    paginate,
    wait,
    presign,
    stubbed,
    new_client,
    new_session,
]
ERRORS = [
    missing_key,
    missing_key_by_its_class,
    busy,
    busy_with_retries,
    broken_answer,
    short_body,
    dropped,
    timed_out,
    refused,
    refused_with_retries,
    wrong_parameter,
    wrong_bucket,
    no_credentials,
    unsigned,
    waited_in_vain,
    stubbed_error,
    wrongly_stubbed,
    no_such_service,
    no_such_operation,
]
