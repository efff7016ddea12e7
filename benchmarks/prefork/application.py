"""Which example application is served, and what its environment says."""

APP = "examples.django_catalogue.wsgi:application"
WARM_UP = "examples.django_catalogue.warm_up:warm_up"

COLLECT_PATH = "/debug/collect/"
"""Where a worker collects its garbage; there with `collects` only."""


def environment(items: int, *, collects: bool = False) -> dict[str, str]:
    """Return what the server's environment has to have; all sides get the same.

    items: size of the catalogue; 0 leaves nothing but imports.  collects: whether COLLECT_PATH is
    there.
    """
    return {
        "DJANGO_SETTINGS_MODULE": "examples.django_catalogue.settings",
        "CATALOGUE_ITEMS": str(items),
        "CATALOGUE_COLLECT": "1" if collects else "0",
    }
