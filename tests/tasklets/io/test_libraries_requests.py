"""requests, as it is, used by 1,000 tasklets at once."""

import datetime as dt
import ipaddress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support import Child
from tests.tasklets.io.http_sites import SITE
from tests.tasklets.io.libraries import needs, run_patched

pytestmark = pytest.mark.usefixtures("requests_is_there")


@pytest.fixture
def requests_is_there() -> None:
    needs("requests")


def run_with_site(code: str, *arguments: str) -> Child:
    environment = {"ARGUMENT": arguments[0]} if arguments else None
    return run_patched(SITE + "\nimport requests\n" + code, env=environment)


@pytest.mark.slow
def test_a_thousand_sessions_at_once() -> None:
    run_with_site("""
COUNT = Handler.crowd = 1_000
site, url = serving()

def work(number):
    with requests.Session() as session:
        first = session.get(f"{url}/echo/{number}").text
        second = session.post(f"{url}/", json={"number": number}).json()["number"]
        third = session.get(f"{url}/together/{number}").text
        return first, second, third

work_of = Together(work, COUNT)
assert work_of.answers() == [(str(n), n, str(n)) for n in range(COUNT)]
assert Handler.most_waiting == COUNT  # at once, at the server
assert site.connections == COUNT  # each session kept its own
assert work_of.turns > 3
over(site)
print("fine")
""")


def test_nobody_else_waits_for_an_answer() -> None:
    """The site answers nobody until all have come; who waits with the thread never comes."""
    run_with_site("""
COUNT = Handler.crowd = 100
site, url = serving()
for repeat in range(3):
    Handler.everybody.clear()
    work = Together(
        lambda number: requests.get(f"{url}/together/{number}", timeout=60).text, COUNT
    )
    assert work.answers() == list(map(str, range(COUNT)))
    assert Handler.most_waiting == COUNT
    wait_until(lambda: site.now == 0)
    if repeat == 1:
        before = descriptors()
assert descriptors() <= before
over(site)
print("fine")
""")


def test_a_pool_that_blocks_is_shared() -> None:
    """urllib3's pool waits in a LifoQueue: for a connection that another tasklet gives back."""
    run_with_site("""
COUNT, SIZE = 400, 20
site, url = serving()
session = requests.Session()
session.mount(url, requests.adapters.HTTPAdapter(pool_maxsize=SIZE, pool_block=True))

work = Together(lambda number: session.get(f"{url}/slowly/{number}").text, COUNT)
assert work.answers() == list(map(str, range(COUNT)))
assert 2 <= Handler.most_waiting <= SIZE
assert site.connections == SIZE
session.close()
over(site)
print("fine")
""")


def test_errors_are_those_of_requests() -> None:
    run_with_site("""
site, url = serving()
taken = socket.socket()  # does not listen, and nobody else can at its port
taken.bind(("127.0.0.1", 0))
nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"

expected = {
    f"{nobody}/": "ConnectionError",
    f"{url}/hangs_up/": "ConnectionError",
    f"{url}/reset/": "ConnectionError",
    f"{url}/half/": "ChunkedEncodingError",
    f"{url}/never/": "ReadTimeout",
    f"{url}/echo/fine": "nothing",
}
addresses = list(expected)

def work(number):
    address = addresses[number % len(addresses)]
    return raised(lambda: requests.get(address, timeout=0.3 if "never" in address else 60))

together = Together(work, 20 * len(addresses))
assert together.answers() == list(expected.values()) * 20, together.answers()
# Who waited for ever has noticed that the client went.
wait_until(lambda: site.now == 0)
over(site)
print("fine")
""")


def test_a_body_arrives_in_parts() -> None:
    run_with_site("""
site, url = serving()

def work(number):
    with requests.get(f"{url}/parts/one{number}-two-three", stream=True) as answer:
        return "".join(part.decode() for part in answer.iter_content(3))

assert Together(work, 50).answers() == [f"one{n}twothree" for n in range(50)]
over(site)
print("fine")
""")


def test_a_killed_tasklet_closes_its_connection() -> None:
    run_with_site("""
site, url = serving()
session = requests.Session()
victims = []

def work(number):
    if number % 2:
        return session.get(f"{url}/echo/{number}").text
    try:
        session.get(f"{url}/never/")
    finally:
        victims.append(number)

def kill(together):
    for one in together.tasklets[::2]:
        one.kill()

try:
    Together(work, 40, until=lambda: Handler.waiting == 20, then=kill)
except BaseExceptionGroup as group:
    assert {type(each) for each in group.exceptions} == {TaskletExit}, group
assert sorted(victims) == list(range(0, 40, 2))
wait_until(lambda: Handler.waiting == 0)  # the site sees that they have gone
assert session.get(f"{url}/echo/still").text == "still"
session.close()
over(site)
print("fine")
""")


def certificate(folder: Path) -> str:
    """Make a certificate of 127.0.0.1 that signs itself, with its key in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    day = dt.timedelta(days=1)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "site.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return str(path)


def test_with_tls(tmp_path: Path) -> None:
    run_with_site(
        """
import ssl
COUNT = Handler.crowd = 50
pem = os.environ["ARGUMENT"]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(pem)

class Late(Server):
    '''The handshake is the business of the connection's tasklet.'''

    def process_request_thread(self, request, address):
        try:
            request = context.wrap_socket(request, server_side=True)
        except OSError:
            Handler.refused = getattr(Handler, "refused", 0) + 1
            return request.close()
        super().process_request_thread(request, address)

site, url = serving(Late)
url = url.replace("http:", "https:")

def work(number):
    with requests.Session() as session:
        session.verify = pem
        first = session.get(f"{url}/echo/{number}").text
        return first, session.get(f"{url}/together/{number}").text

assert Together(work, COUNT).answers() == [(str(n), str(n)) for n in range(COUNT)]
assert Handler.most_waiting == COUNT
# Whose certificate nobody vouches for.
assert Together(lambda n: raised(requests.get, f"{url}/echo/"), 5).answers() == ["SSLError"] * 5
over(site)
print("fine")
""",
        certificate(tmp_path),
    )
