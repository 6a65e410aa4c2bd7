"""Values of a template for the settings of a provider that a user left blank."""

from dataclasses import replace
from urllib.parse import urlsplit

from toolbench.lab.endpoints.connect import ConnectionSettings
from toolbench.lab.models import Provider
from toolbench.providers.templates import load_templates

DEFAULT_PREFIX = "/v1"


def fill_from_template(settings: ConnectionSettings) -> ConnectionSettings:
    """Return the settings with values for a blank name, URL, API or network setting.

    The values are those of the template; without a template, they are the host as name, DEFAULT_PREFIX and chat.
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
    """Return the host of a URL with its port; "" if there is none."""
    try:
        return urlsplit(address).netloc.rpartition("@")[2][:80]
    except ValueError:
        return ""
