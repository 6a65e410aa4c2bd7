"""Values of a provider that are left blank, filled in from its template."""

from dataclasses import replace
from urllib.parse import urlsplit

from toolbench.lab.endpoints.connect import ConnectionSettings
from toolbench.lab.models import Provider
from toolbench.providers.templates import load_templates

DEFAULT_PREFIX = "/v1"


def fill_from_template(wish: ConnectionSettings) -> ConnectionSettings:
    """Return the settings with the template's values for name, address, API and network where they are blank."""
    known = load_templates().get(wish.template)
    typed = wish.base_url.strip()
    prefix = known.api_prefix if known and not (typed and known.base_url) else DEFAULT_PREFIX
    network = replace(
        wish.network,
        query=wish.network.query or (known.query if known else ""),
        key_header=wish.network.key_header or (known.key_header if known else ""),
    )
    return replace(
        wish,
        name=wish.name or (known.title if known else _parse_host(typed)),
        base_url=typed or (known.base_url if known else ""),
        api_prefix=wish.api_prefix or prefix,
        wire=wish.wire or (known.wire if known else Provider.Wire.CHAT),
        network=network,
    )


def _parse_host(address: str) -> str:
    """Return the host of a URL with its port; empty if there is none."""
    try:
        return urlsplit(address).netloc.rpartition("@")[2][:80]
    except ValueError:
        return ""
