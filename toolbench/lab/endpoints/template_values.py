"""Defaults for the settings of a provider that a user left blank."""

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

from toolbench.lab.endpoints.connect import MAX_NAME_CHARACTERS, ConnectionSettings
from toolbench.lab.endpoints.network import NetworkSettings
from toolbench.lab.models import Provider
from toolbench.providers.templates import load_templates

DEFAULT_PREFIX = "/v1"
Settings = TypeVar("Settings", ConnectionSettings, NetworkSettings)


def fill_from_template(settings: ConnectionSettings, stored: Container[str] = ()) -> ConnectionSettings:
    """Return the settings with defaults in place of blank values.

    With a template, name, URL, API prefix, wire format, query and key header have the defaults of the template. But the
    default of the prefix is DEFAULT_PREFIX if the template has a URL and the user enters another one.

    Without a template, the default of the name is the host, that of the prefix DEFAULT_PREFIX, and that of the wire
    format chat completions.

    Args:
        settings: the settings that a user entered.
        stored: names of settings that are stored for the provider already; they get no default.
    """
    template = load_templates().get(settings.template)
    base_url = settings.base_url.strip()
    defaults: dict[str, Any] = {"name": _parse_host(base_url), "api_prefix": DEFAULT_PREFIX, "wire": Provider.Wire.CHAT}
    if template:
        defaults |= {name: getattr(template, name) for name in ("base_url", "wire", "query", "key_header")}
        defaults["name"] = template.title
        entered_url = base_url.rstrip("/")
        if not entered_url or template.base_url in ("", entered_url):
            defaults["api_prefix"] = template.api_prefix
    defaults = {name: default for name, default in defaults.items() if name not in stored}
    network = _fill_blanks(settings.network, defaults)
    return _fill_blanks(replace(settings, base_url=base_url, network=network), defaults)


def _fill_blanks(settings: Settings, defaults: Mapping[str, Any]) -> Settings:
    blank_names = [name for name in defaults if getattr(settings, name, None) == ""]
    return replace(settings, **{name: defaults[name] for name in blank_names})


def _parse_host(address: str) -> str:
    """Return the host and port of a URL, truncated to MAX_NAME_CHARACTERS; "" if there is no host."""
    try:
        return urlsplit(address).netloc.rpartition("@")[2][:MAX_NAME_CHARACTERS]
    except ValueError:
        return ""
