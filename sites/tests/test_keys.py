"""Keys: what other programs make of them, and what they depend on."""

import base64
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpythonplus_sites import keys

pytestmark = pytest.mark.any_version

NAMES = st.from_regex(r"[a-z0-9][a-z0-9-]{0,20}", fullmatch=True)
SECRETS = st.binary(min_size=32, max_size=32).map(lambda data: base64.b64encode(data).decode())


def test_a_pair_of_the_rfc() -> None:
    """RFC 7748, section 6.1: Alice's keys."""
    private = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"
    public = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
    text = base64.b64encode(bytes.fromhex(private)).decode()
    assert base64.b64decode(keys.public_key(text)).hex() == public


def test_private_keys_are_clamped_and_differ() -> None:
    made = [keys.new_private_key() for _ in range(50)]
    assert len(set(made)) == 50
    for key in made:
        data = keys.decoded(key)
        assert data[0] & 7 == 0
        assert data[-1] >> 6 == 1


@pytest.mark.skipif(shutil.which("wg") is None, reason="compares with the program wg")
def test_wg_finds_the_same_public_key() -> None:
    for _ in range(5):
        key = keys.new_private_key()
        done = subprocess.run(
            ["wg", "pubkey"], input=key, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == keys.public_key(key)


@settings(max_examples=30, deadline=None)
@given(SECRETS, NAMES, NAMES, NAMES)
def test_preshared_keys_are_of_the_pair_alone(secret: str, a: str, b: str, c: str) -> None:
    if len({a, b, c}) < 3:
        return
    key = keys.preshared_key(secret, a, b)
    assert keys.preshared_key(secret, b, a) == key
    assert len({key, keys.preshared_key(secret, a, c), keys.preshared_key(secret, b, c)}) == 3
    keys.decoded(key)


@settings(max_examples=30, deadline=None)
@given(SECRETS, SECRETS, NAMES)
def test_preshared_keys_are_of_the_secret(one: str, other: str, name: str) -> None:
    made = {keys.preshared_key(secret, name, name + "x") for secret in (one, other)}
    assert len(made) == len({one, other})


def test_a_preshared_key_stays_from_version_to_version() -> None:
    secret = base64.b64encode(bytes(range(32))).decode()
    # The same by hand: HMAC over zeros and the secret, then over the info and \\x01 (RFC 5869).
    key = keys.preshared_key(secret, "paris", "berlin")
    assert key == "bbnq8WiQ3xzk7FEyP1Lf346ba8F7aFGXCnLj6B1ukPI="


def test_a_site_has_no_preshared_key_with_itself() -> None:
    with pytest.raises(ValueError, match="needs two sites, got 'berlin' twice"):
        keys.preshared_key(keys.new_preshared_secret(), "berlin", "berlin")


KEY = base64.b64encode(bytes(range(32))).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "é" * 44,
        KEY[:-1],
        KEY + "\n",
        "A" * 42 + "B=",  # bits set that stand for nothing
        base64.b64encode(b"x" * 33).decode(),
    ],
)
def test_what_is_no_key_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(keys.KeyFormatError, match="32 bytes in base64") as caught:
        keys.public_key(text)
    assert not text or len(text) < 2 or text not in str(caught.value)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="compares with ssh-keygen")
def test_ssh_keygen_finds_the_same_public_line(tmp_path: Path) -> None:
    text, line = keys.new_ssh_key("gate way")
    path = tmp_path / "key"
    path.touch(mode=0o600)
    path.write_text(text)
    done = subprocess.run(
        ["ssh-keygen", "-y", "-f", path], capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[:2] == line.split()[:2]
    assert line.split()[2:] == ["gateway"]
    assert keys.ssh_public_line(text, "gateway") == line


def test_what_is_no_ssh_key_is_refused() -> None:
    with pytest.raises(keys.KeyFormatError, match="not a private ssh key"):
        keys.ssh_public_line("-----BEGIN OPENSSH PRIVATE KEY-----\n")
