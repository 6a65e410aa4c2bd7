"""Defaults for the settings of a provider that a user left blank."""

from dataclasses import replace
from urllib.parse import urlsplit

from toolbench.lab.endpoints.connect import MAX_NAME_CHARACTERS, ConnectionSettings
from toolbench.lab.models import Provider
from toolbench.providers.templates import load_templates

DEFAULT_PREFIX = "/v1"


def fill_from_template(settings: ConnectionSettings) -> ConnectionSettings:
    """Return the settings with defaults in place of blank values.

    Name, URL, API prefix, wire format, query and key header have defaults. The defaults are those of the template.
    Without a template they are the host as the name, DEFAULT_PREFIX, and the chat completions API. DEFAULT_PREFIX also
    applies if the user enters a URL in place of that of the template.
    """
    template = load_templates().get(settings.template)
    base_url = settings.base_url.strip()
    prefix = template.api_prefix if template and not (base_url and template.base_url) else DEFAULT_PREFIX
    network = replace(
        settings.network,
        query=settings.network.query or (template.query if template else ""),
        key_header=settings.network.key_header or (template.key_header if template else ""),
    )
    return replace(
        settings,
        name=settings.name or (template.title if template else _parse_host(base_url)),
        base_url=base_url or (template.base_url if template else ""),
        api_prefix=settings.api_prefix or prefix,
        wire=settings.wire or (template.wire if template else Provider.Wire.CHAT),
        network=network,
    )


def _parse_host(address: str) -> str:
    """Return the host of a URL with its port, truncated to MAX_NAME_CHARACTERS; "" if there is none."""
    try:
        return urlsplit(address).netloc.rpartition("@")[2][:MAX_NAME_CHARACTERS]
    except ValueError:
        return ""
