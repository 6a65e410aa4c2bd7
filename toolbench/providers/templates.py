"""Templates of known providers: addresses, key variables and presets, from data/templates.json."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TEMPLATES_PATH = Path(__file__).parent / "data" / "templates.json"


@dataclass(frozen=True, slots=True)
class ProviderTemplate:
    """Settings for connecting a known provider.

    Attributes:
        slug: unique name in URLs.
        title: name on pages.
        base_url: address of the provider, before `api_prefix`; "" if each customer has a different one.
        api_prefix: part of the path before that of the wire format, such as "/v1".
        key_env: environment variable that the provider's documentation names, "" if no key is needed.
        preset: name of a preset in engine/data/presets.json.
        docs: address of the provider's documentation.
        note: sentence for the page on which the provider is connected.
        probe_port: port at which Toolbench looks for the local server on this machine; None for remote providers.
        wire: name of the wire format in engine/wire_formats/registry.py.
        query: query parameters of every address, such as "api-version=2024-10-21"; "" for none.
        key_header: header that carries the key; "" for the header of the wire format.
    """

    slug: str
    title: str
    base_url: str
    api_prefix: str
    key_env: str
    preset: str
    docs: str
    note: str
    probe_port: int | None
    wire: str = "chat"
    query: str = ""
    key_header: str = ""


@cache
def load_templates() -> dict[str, ProviderTemplate]:
    """Return the templates by slug, in the order of data/templates.json. The result is cached."""
    rows = json.loads(TEMPLATES_PATH.read_text(encoding="utf-8"))
    return {row["slug"]: ProviderTemplate(**row) for row in rows}


def lookup_template(slug: str) -> ProviderTemplate:
    """Return the template with this slug.

    Raises:
        KeyError: no template has this slug.
    """
    return load_templates()[slug]


def list_templates_with_key(environment: Mapping[str, str]) -> tuple[ProviderTemplate, ...]:
    """Return the templates whose key variable is set and not blank, in the order of `load_templates`."""
    return tuple(
        template
        for template in load_templates().values()
        if template.key_env and environment.get(template.key_env, "").strip()
    )
