"""Providers that can be connected by name: addresses, key variables and presets, as data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TEMPLATES_PATH = Path(__file__).parent / "data" / "templates.json"


@dataclass(frozen=True, slots=True)
class ProviderTemplate:
    """`base_url` and `api_prefix` go into an Endpoint as they are. `key_env` is the environment variable the provider's
    own documentation names, "" where no key is needed. `preset` is a name in engine/data/presets.json. `probe_port` is
    where a program on this machine listens unless told otherwise, None for providers elsewhere. `wire` is a name in
    engine/wire_formats/registry.py."""

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


@cache
def load_templates() -> dict[str, ProviderTemplate]:
    """Every template by slug, in the order of the file."""
    rows = json.loads(TEMPLATES_PATH.read_text(encoding="utf-8"))
    return {row["slug"]: ProviderTemplate(**row) for row in rows}


def lookup_template(slug: str) -> ProviderTemplate:
    """Raises KeyError for an unknown slug."""
    return load_templates()[slug]


def list_templates_with_key(environment: Mapping[str, str]) -> tuple[ProviderTemplate, ...]:
    """The templates whose key variable is set and not blank, in order."""
    return tuple(t for t in load_templates().values() if t.key_env and environment.get(t.key_env, "").strip())
