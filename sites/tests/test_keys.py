"""Keys: what other programs make of them, and what they depend on."""

import base64
import hmac
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpythonplus_sites import keys, values
from cpythonplus_sites.machine import ProgramError
from sites.tests import wg_pubkey
from sites.tests.programs import needs_ssh_keygen
from tests.support import under

pytestmark = pytest.mark.any_version

NAMES = st.from_regex(r"[a-z0-9][a-z0-9-]{0,20}", fullmatch=True)
SECRETS = st.binary(min_size=32, max_size=32).map(lambda data: base64.b64encode(data).decode())


def test_a_pair_of_the_rfc() -> None:
    """RFC 7748, section 6.1: Alice's keys."""
    private = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"
    public = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
    text = base64.b64encode(bytes.fromhex(private)).decode()
    assert base64.b64decode(keys.public_key(text)).hex() == public
    assert wg_pubkey.public_key(bytes.fromhex(private)).hex() == public


def test_private_keys_are_clamped_and_differ() -> None:
    made = [keys.new_private_key() for _ in range(50)]
    assert len(set(made)) == 50
    for key in made:
        data = keys.decoded(key)
        assert data[0] & 7 == 0
        assert data[-1] >> 6 == 1


def test_wg_finds_the_same_public_key_as_the_stand_in() -> None:
    """Which is compared with itself where the tests have no other."""
    for _ in range(5):
        key = keys.new_private_key()
        public = wg_pubkey.public_key(keys.decoded(key))
        assert base64.b64decode(keys.public_key(key)) == public


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_the_key_is_given_by_standard_input_once(without_programs: Path) -> None:
    public = base64.b64encode(bytes(range(32))).decode()
    calls = without_programs / "calls"
    program(without_programs, "wg", f'echo "$*" >>{calls}; read -r key; echo {public}')
    key = keys.new_private_key()
    assert [keys.public_key(key) for _ in range(3)] == [public] * 3
    assert calls.read_text() == "pubkey\n"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo wg: no >&2; exit 1", "wg: wg: no"),
        ("exit 3", "wg: status 3"),
        ("echo nonsense", "not a key"),
        ("true", "not a key"),
    ],
)
def test_a_wg_that_fails_is_one_line(without_programs: Path, script: str, message: str) -> None:
    program(without_programs, "wg", script)
    with pytest.raises((ProgramError, keys.KeyFormatError), match=message):
        keys.public_key(keys.new_private_key())


def test_programs_that_are_missing_are_named_with_their_package(
    without_programs: Path, tmp_path: Path
) -> None:
    with pytest.raises(ProgramError, match=r"^requires wg, .*: apt-get install wireguard-tools\)$"):
        keys.public_key(keys.new_private_key())
    message = r"^requires ssh-keygen, .*: apt-get install openssh-client\)$"
    with pytest.raises(ProgramError, match=message):
        keys.new_ssh_key(tmp_path)
    with pytest.raises(ProgramError, match=message):
        keys.ssh_public_line(tmp_path / "key")
    assert list(tmp_path.iterdir()) == [without_programs]


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
    key = keys.preshared_key(secret, "paris", "berlin", of_names=True)
    assert key == "bbnq8WiQ3xzk7FEyP1Lf346ba8F7aFGXCnLj6B1ukPI="
    mac = hmac.digest(bytes(32), bytes(range(32)), "sha256")
    by_hand = hmac.digest(mac, b"cpythonplus sites psk v2 KEY1 KEY2\x01", "sha256")
    assert keys.preshared_key(secret, "KEY2", "KEY1") == base64.b64encode(by_hand).decode()


@pytest.mark.parametrize(
    ("secret", "salt", "info", "expected"),
    [
        (
            "0b" * 22,
            "000102030405060708090a0b0c",
            "f0f1f2f3f4f5f6f7f8f9",
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf",
        ),
        (
            "0b" * 22,
            "00" * 32,
            "",
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d",
        ),
    ],
)
def test_keys_of_the_rfc_are_derived(secret: str, salt: str, info: str, expected: str) -> None:
    """RFC 5869, A.1 and A.3: the first 32 bytes."""
    words = (bytes.fromhex(word) for word in (secret, info, salt))
    assert keys.hkdf(*words).hex() == expected


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


@needs_ssh_keygen
def test_an_ssh_key_and_its_public_line(tmp_path: Path) -> None:
    before = keys.new_ssh_key(tmp_path)
    text, line = keys.new_ssh_key(tmp_path, "gate way")
    assert text != before[0]
    assert text.startswith("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    assert list(tmp_path.iterdir()) == []
    kind, data, comment = values.ssh_key(line).split()
    assert (kind, comment) == ("ssh-ed25519", "gateway")
    assert len(base64.b64decode(data)) == 4 + len(kind) + 4 + 32
    path = tmp_path / "key"
    path.touch(mode=0o600)
    path.write_text(text)
    assert keys.ssh_public_line(path, "gateway") == line
    assert "@" in keys.ssh_public_line(path).split()[2]


@needs_ssh_keygen
def test_what_a_killed_one_left_of_an_ssh_key_goes(tmp_path: Path) -> None:
    left = tmp_path / ".new-ssh-key"
    left.mkdir()
    (left / "key").touch()
    keys.new_ssh_key(tmp_path)
    assert not left.exists()


@needs_ssh_keygen
def test_nobody_else_can_read_an_ssh_key_while_it_is_made(
    tmp_path: Path, without_programs: Path
) -> None:
    modes = tmp_path / "modes"
    words = f'stat -c %a . "$(dirname "$f")" "$f" >>{modes}'
    real = shutil.which("ssh-keygen", path=os.defpath)
    last = 'for f in "$@"; do :; done'
    script = f'PATH={os.defpath}; {last}; {real} "$@" || exit; {words}'
    program(without_programs, "ssh-keygen", script)
    with under(0):
        keys.new_ssh_key(tmp_path)
    assert modes.read_text().split()[1:3] == ["700", "600"]


@needs_ssh_keygen
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-t", "ed25519", "-N", "password1"], "not a private ssh key without a passphrase"),
        (["-t", "ecdsa", "-N", ""], "not an ed25519 key"),
        (None, "not a private ssh key"),
    ],
)
def test_what_is_no_ssh_key_is_refused(
    tmp_path: Path, options: list[str] | None, message: str
) -> None:
    path = tmp_path / "key"
    if options is None:
        path.touch(mode=0o600)
        path.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    else:
        subprocess.run(["ssh-keygen", "-q", *options, "-f", path], check=True)
    with pytest.raises(keys.KeyFormatError, match=message):
        keys.ssh_public_line(path)
