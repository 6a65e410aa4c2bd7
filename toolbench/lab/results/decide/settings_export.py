"""Export of a configuration for other programs: its frozen settings and the current address of its provider.

API keys and header values are never exported, only the names of headers and of a key's environment variable.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from toolbench.engine.errors import PlanError, PolicyError
from toolbench.evals.decisions.sdk_export import FORMAT_BY_FILE, ExportedSettings
from toolbench.lab.credentials.provider_secrets import list_provider_secrets
from toolbench.lab.models import Provider, RunConfig, ServiceAddress
from toolbench.providers.endpoint import fill_api_prefix
from toolbench.providers.masking.url_keys import mask_address

DEFAULT_KEY_VARIABLE = "API_KEY"
DEFAULT_BASE_URL = "http://127.0.0.1"


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """An exported file.

    Attributes:
        file: name of the file.
        title: title of its format, for a page.
    """

    file: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class SettingsPage:
    """The exported files of a configuration.

    Attributes:
        files: a file in each format; () if there is a problem.
        problem: the reason why no file can be written; "" if there are files.
    """

    config: RunConfig
    files: tuple[SettingsFile, ...]
    problem: str


def get_settings_page(config_id: int) -> SettingsPage | None:
    """Return all files of a configuration; None if there is no such configuration or its run was deleted."""
    config = RunConfig.objects.select_related("run", "provider").filter(pk=config_id, run__deleted_at=None).first()
    if config is None:
        return None
    try:
        settings = build_exported_settings(config)
        files = tuple(SettingsFile(file, title, render(settings)) for file, (title, render) in FORMAT_BY_FILE.items())
    except (PlanError, PolicyError) as error:
        return SettingsPage(config, (), f"This version of the engine cannot use these settings: {error}")
    return SettingsPage(config, files, "")


def build_exported_settings(config: RunConfig) -> ExportedSettings:
    """Return the settings from which the files are rendered."""
    provider = config.provider
    headers = tuple(provider.header_names) if provider else ()
    query, key_header = (provider.query, provider.key_header) if provider else ("", "")
    notes = (
        *(("Simulated model: this says nothing about real models.",) if config.run.simulated else ()),
        *((f"The provider also needs the headers {', '.join(headers)}; add their values.",) if headers else ()),
        *((f"The provider also needs the query parameters {query}.",) if query else ()),
        *(
            (f"The provider takes the key in the header {key_header}: add it in an SDK or LiteLLM.",)
            if key_header
            else ()
        ),
    )
    return ExportedSettings(
        name=str(config),
        model=config.model_name,
        base_url=_build_base_url(config),
        api_prefix=_build_api_prefix(config),
        key_env=(provider.key_env if provider else "") or DEFAULT_KEY_VARIABLE,
        wire=provider.wire if provider else Provider.Wire.CHAT.value,
        layers=tuple((name, patch) for name, patch in config.layers),
        policy_hash=config.policy_hash,
        key_header=key_header,
        stream=config.stream,
        about=(f"Run {config.run_id} froze these settings. Their hash begins with {config.policy_hash[:12]}.", *notes),
    )


def _build_api_prefix(config: RunConfig) -> str:
    """Return the API prefix for the model, with secrets masked; "/v1" without a provider."""
    if config.provider is None:
        return "/v1"
    masked_prefix = mask_address(config.provider.api_prefix, list_provider_secrets(config.provider))
    return fill_api_prefix(masked_prefix, config.model_name)


def _build_base_url(config: RunConfig) -> str:
    """Return the base URL without user name, password and query, and with secrets masked.

    Without a stored base URL, the current address of the local server is used, or DEFAULT_BASE_URL if none is known.
    """
    base_url = config.provider.base_url if config.provider else ""
    if not base_url:
        address = ServiceAddress.objects.filter(name=config.service).first()
        base_url = address.url if address else DEFAULT_BASE_URL
    parts = urlsplit(base_url)
    stripped_url = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    return mask_address(stripped_url, list_provider_secrets(config.provider) if config.provider else ())
