"""Export of the frozen settings of a configuration for other programs.

API keys and header values are never exported; only the name of a key's environment variable is.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from toolbench.engine.errors import PlanError, PolicyError
from toolbench.evals.decisions.sdk_export import RENDERER_BY_FILE, ExportedSettings
from toolbench.lab.credentials.provider_secrets import list_provider_secrets
from toolbench.lab.models import Provider, RunConfig, ServiceAddress
from toolbench.providers.masking.url_keys import mask_address

DEFAULT_KEY_VARIABLE = "API_KEY"
DEFAULT_BASE_URL = "http://127.0.0.1"


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """An exported file."""

    file: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class SettingsPage:
    """The exported files of a configuration.

    Attributes:
        problem: the reason why no file can be written; empty if there are files.
    """

    config: RunConfig
    files: tuple[SettingsFile, ...]
    problem: str


def get_settings_page(config_id: int) -> SettingsPage | None:
    """Return all files of a configuration with two or three queries; None if there is no such configuration."""
    config = RunConfig.objects.select_related("run", "provider").filter(pk=config_id, run__deleted_at=None).first()
    if config is None:
        return None
    try:
        chosen = build_chosen_settings(config)
        files = tuple(SettingsFile(file, title, write(chosen)) for file, (title, write) in RENDERER_BY_FILE.items())
    except (PlanError, PolicyError) as error:
        return SettingsPage(config, (), f"These settings are not taken by this version of the engine: {error}")
    return SettingsPage(config, files, "")


def build_chosen_settings(config: RunConfig) -> ExportedSettings:
    """Return the settings that the files are written from."""
    provider = config.provider
    simulated = ("A simulated model: nothing was measured on a real one.",) if config.run.simulated else ()
    headers = tuple(provider.header_names) if provider else ()
    query = provider.query if provider else ""
    also = (f"The provider also wants the query parameters {query}.",) if query else ()
    notes = (f"The provider also wants the headers {', '.join(headers)}; their values stay here.",) if headers else ()
    return ExportedSettings(
        name=str(config),
        model=config.model_name,
        base_url=_build_base_url(config),
        api_prefix=mask_address(provider.api_prefix, list_provider_secrets(provider)) if provider else "/v1",
        key_env=(provider.key_env if provider else "") or DEFAULT_KEY_VARIABLE,
        wire=provider.wire if provider else Provider.Wire.CHAT.value,
        layers=tuple((name, patch) for name, patch in config.layers),
        policy_hash=config.policy_hash,
        stream=config.stream,
        about=(f"Frozen in run {config.run_id}, settings {config.policy_hash[:12]}.", *simulated, *notes, *also),
    )


def _build_base_url(config: RunConfig) -> str:
    """Return the base URL without user name and password; for a local server, its current address."""
    base = config.provider.base_url if config.provider else ""
    if not base:
        served = ServiceAddress.objects.filter(name=config.service).first()
        base = served.url if served else DEFAULT_BASE_URL
    parts = urlsplit(base)
    bare = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    return mask_address(bare, list_provider_secrets(config.provider) if config.provider else ())
