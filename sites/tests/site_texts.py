"""Site files as text, for the tests of what reads them."""

BERLIN_KEY = "YmVybGluYmVybGluYmVybGluYmVybGluYmVybGluYmU="
PARIS_KEY = "cGFyaXNwYXJpc3BhcmlzcGFyaXNwYXJpc3BhcmlzcGE="
SSH_KEY = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJlcmxpbmJlcmxpbmJlcmxpbmJlcmxpbmJlcmxpbmJl root@berlin"
)

GOOD = f"""\
# shared by all gateways
[network]
name = "acme"
tunnel = "10.254.0.0/24"

[sites.berlin]
lan = ["192.168.10.0/24"]  # the house
gateway = "192.168.10.1"
tunnel_address = "10.254.0.1"
endpoint = "vpn.example.org:51820"
public_key = "{BERLIN_KEY}"

[sites.paris]
lan = [
  "192.168.20.0/24",
  "fd00:20::/64",
]
gateway = "192.168.20.1"
tunnel_address = "10.254.0.2"

[sites.rome]
lan = ["192.168.30.0/24"]
gateway = "192.168.30.1"
tunnel_address = "10.254.0.3"
endpoint = "[2001:db8::3]:4500"
ssh_endpoint = "rome.example.org:22"

[[links]]
between = ["berlin", "rome"]
via = "ssh"
tunnel_number = 7
mtu = 1380
"""


def with_changed(old: str, new: str, text: str = GOOD) -> str:
    """The text with one thing in it changed."""
    assert text.count(old) == 1, (old, text.count(old))
    return text.replace(old, new)
