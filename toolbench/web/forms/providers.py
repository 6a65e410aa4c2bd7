"""Form of a provider, which reads input into connection settings that the lab then checks."""

import json
import re
from typing import Any

from django import forms
from django.conf import settings
from django.core.validators import RegexValidator

from toolbench.lab.credentials.provider_secrets import list_provider_secrets
from toolbench.lab.endpoints.connect import OTHER_ENDPOINT_TITLE, ConnectionSettings
from toolbench.lab.endpoints.network import PRIVATE_KEY_MARK, NetworkSettings
from toolbench.lab.endpoints.setup_pages import list_templates
from toolbench.lab.endpoints.simulated import SIMULATED_TEMPLATE as SIMULATED
from toolbench.lab.endpoints.simulated import SIMULATED_TITLE
from toolbench.lab.endpoints.template_values import fill_from_template
from toolbench.lab.endpoints.urls import mask_provider_url
from toolbench.lab.models import Provider
from toolbench.lab.paid_requests import is_private_address
from toolbench.web.forms.json_object import JsonObjectField

NETWORK_FIELDS = ("proxy_url", "ca_pem", "client_certificate", "client_key", "query", "key_header")
RATE_FIELDS = ("concurrency", "adaptive", "requests_per_minute", "tokens_per_minute")
COLLAPSED_FIELDS = (
    *RATE_FIELDS,
    *("max_attempts", "connect_seconds", "read_seconds", "headers", "remove_headers", "option_defaults"),
)
_CONNECTION_FIELDS = (
    *("name", "base_url", "api_prefix", "template", "wire", "key", "key_env", "remove_key", "headers"),
    *("option_defaults", "connect_seconds", "read_seconds", "budget_per_month"),
    *("adaptive", "requests_per_minute", "tokens_per_minute"),
)
_MAX_ADDRESS_CHARACTERS = 300
_HOST_WITHOUT_SCHEME = re.compile(r"[\w-]+(?:\.[\w-]|:\d)")  # matches a prefix of example.org and localhost:8000
_KEY_HELP = (
    "Stored encrypted in the database and never shown again. {} A key of fewer than 8 characters is masked in headers "
    "only."
)
_TEXTAREA_ATTRIBUTES = {"rows": 3, "spellcheck": "false"}


class SecretTextarea(forms.Textarea):
    """Text area whose content is never written back into the page."""

    def format_value(self, value: Any) -> None:
        """Return None, so that the page never contains the text."""
        return None


class CertificateTextarea(forms.Textarea):
    """Text area for certificates, which are shown again unless a private key was pasted with them."""

    def format_value(self, value: Any) -> str | None:
        """Return the text; None if it contains a private key."""
        return None if value and PRIVATE_KEY_MARK in str(value) else value


class ProxyInput(forms.TextInput):
    """Input for the address of a proxy, shown without its login."""

    def format_value(self, value: Any) -> str | None:
        """Return the address without user and password; None for an empty one."""
        scheme, separator, rest = str(value or "").rpartition("://")
        return f"{scheme}{separator}{rest.rpartition('@')[2]}" or None


class UrlInput(forms.TextInput):
    """URL input that masks API keys.

    Attributes:
        known_secrets: secrets to mask, besides text that looks like a key.
    """

    known_secrets: tuple[str, ...] = ()

    def format_value(self, value: Any) -> str | None:
        """Return the URL with masked keys; None for an empty one."""
        return mask_provider_url(str(value), self.known_secrets) if value else None


class ProviderForm(forms.Form):
    """Form of a provider.

    A template fills in blank fields, and a blank key keeps the stored one. The form shows only the names of stored
    headers, each of which can be replaced or removed.
    """

    template = forms.ChoiceField(required=False, label="Template", help_text="Fills in blank fields.")
    name = forms.CharField(
        required=False,
        max_length=80,
        label="Name",
        help_text="If blank: the name of the template or the host. A simulated provider needs a unique name.",
    )
    base_url = forms.CharField(
        required=False,
        max_length=_MAX_ADDRESS_CHARACTERS,
        label="Address",
        widget=UrlInput(attrs={"placeholder": "http://127.0.0.1:8000"}),
        help_text="With or without the prefix.",
    )
    api_prefix = forms.CharField(
        required=False, max_length=60, label="Prefix", widget=UrlInput(), help_text="Usually /v1."
    )
    wire = forms.ChoiceField(
        required=False,
        label="API",
        choices=[("", "The template's own"), *Provider.Wire.choices],
        help_text="Without a template: chat completions.",
    )
    key = forms.CharField(
        required=False,
        max_length=4000,
        label="Key",
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text=_KEY_HELP.format("Leave blank to keep the stored key for the same host."),
    )
    key_env = forms.CharField(
        required=False,
        max_length=80,
        label="Or its environment variable",
        validators=[RegexValidator(r"\A[A-Za-z_][A-Za-z0-9_]*\Z", "Enter letters, digits and underscores only.")],
        help_text="Example: OPENROUTER_API_KEY. Only the variable's name is stored.",
    )
    remove_key = forms.BooleanField(required=False, label="Remove the stored key")
    concurrency = forms.IntegerField(
        required=False, initial=8, label="Concurrency limit", help_text="Simultaneous requests of all workers."
    )
    adaptive = forms.BooleanField(required=False, label="Adapt the concurrency limit, up to this maximum")
    requests_per_minute = forms.IntegerField(
        required=False, label="Requests per minute", help_text="Over all workers. Blank: no limit."
    )
    tokens_per_minute = forms.IntegerField(
        required=False, label="Tokens per minute", help_text="Of requests and answers. Blank: no limit."
    )
    max_attempts = forms.IntegerField(
        required=False,
        initial=3,
        label="Attempts for a request",
        help_text="Attempts before any model output. Each attempt is stored.",
    )
    connect_seconds = forms.FloatField(
        required=False,
        min_value=0.1,
        max_value=600,
        label="Connect timeout, s",
        help_text=f"Blank: {settings.CONNECT_SECONDS:g}.",
    )
    read_seconds = forms.FloatField(
        required=False,
        min_value=0.1,
        max_value=3600,
        label="Read timeout, s",
        help_text=f"Blank: {settings.READ_SECONDS:g}.",
    )
    budget_per_month = forms.FloatField(
        required=False,
        label="Budget per month, $",
        help_text="In a calendar month (UTC), over all runs and schedules. Blank: none. Unknown costs are not counted.",
    )
    headers = JsonObjectField(
        required=False,
        label="Extra headers",
        widget=SecretTextarea(attrs=_TEXTAREA_ATTRIBUTES),
        help_text=(
            "A JSON object of texts. Values are stored encrypted and never shown again. A new value replaces the "
            "stored value of the same header."
        ),
    )
    remove_headers = forms.MultipleChoiceField(
        required=False, label="Stored headers to remove", widget=forms.CheckboxSelectMultiple
    )
    proxy_url = forms.CharField(
        required=False,
        max_length=300,
        label="Proxy",
        widget=ProxyInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text=(
            "Example: http://user:password@proxy.example:3128. User and password are stored encrypted and never shown "
            "again; without them, those stored for the same address stay."
        ),
    )
    remove_proxy_login = forms.BooleanField(required=False, label="Remove the stored user and password of the proxy")
    ca_pem = forms.CharField(
        required=False,
        max_length=400_000,
        label="CA file (PEM)",
        widget=CertificateTextarea(attrs=_TEXTAREA_ATTRIBUTES),
        help_text="Certificates of your company's authority. They are trusted in addition to the default authorities.",
    )
    client_certificate = forms.CharField(
        required=False,
        max_length=100_000,
        label="Client certificate (PEM)",
        widget=CertificateTextarea(attrs=_TEXTAREA_ATTRIBUTES),
        help_text="With its chain. Blank: none, and the stored private key is deleted.",
    )
    client_key = forms.CharField(
        required=False,
        max_length=20_000,
        label="Private key of the client certificate (PEM)",
        widget=SecretTextarea(attrs=_TEXTAREA_ATTRIBUTES),
        help_text="Without a password. Stored encrypted and never shown again. Leave blank to keep the stored one.",
    )
    query = forms.CharField(
        required=False,
        max_length=200,
        label="Query parameters",
        help_text="Added to every request, such as api-version=2024-10-21. Enter no key, since the page shows them.",
    )
    key_header = forms.CharField(
        required=False, max_length=60, label="Header of the key", help_text="Blank: that of the API. Azure: api-key."
    )
    option_defaults = JsonObjectField(
        required=False, label="Default options", help_text="A JSON object. A request's own options override it."
    )

    def __init__(self, *args: Any, provider: Provider | None = None, **kwargs: Any) -> None:
        """Build the form.

        Args:
            *args: arguments of `Form`.
            provider: the stored provider, whose secrets are masked and whose headers can be removed; None for a new
                provider.
            **kwargs: arguments of `Form`.
        """
        super().__init__(*args, **kwargs)
        self.provider = provider
        secrets = list_provider_secrets(provider or Provider(), [str((self.data or {}).get("key", ""))])
        for name in ("base_url", "api_prefix"):
            url_widget = self.fields[name].widget
            assert isinstance(url_widget, UrlInput)
            url_widget.known_secrets = secrets
        if provider is None:
            blank_text = "Leave blank if the server needs no key, as most local servers do."
            self.fields["key"].help_text = _KEY_HELP.format(blank_text)
        remove_headers = self.fields["remove_headers"]
        assert isinstance(remove_headers, forms.MultipleChoiceField)
        remove_headers.choices = [(name, name) for name in (provider.header_names if provider else ())]
        field = self.fields["template"]
        assert isinstance(field, forms.ChoiceField)
        template_choices = [(template.slug, template.title) for template in list_templates()]
        field.choices = [("", OTHER_ENDPOINT_TITLE), *template_choices, (SIMULATED, SIMULATED_TITLE)]

    @property
    def is_expanded(self) -> bool:
        """Return whether the group of less common fields is expanded: one of them has an error."""
        return any(self[name].errors for name in COLLAPSED_FIELDS)

    @property
    def is_network_expanded(self) -> bool:
        """Return whether the network fields are expanded: one of them has an error or a value."""
        return any(self[name].errors or self[name].value() for name in NETWORK_FIELDS)

    @classmethod
    def from_provider(cls, provider: Provider) -> "ProviderForm":
        """Return the form, filled in from a provider, without its secrets."""
        other_names = {"key", "remove_key", "headers", "remove_headers", "option_defaults", "client_key"}
        other_names.add("remove_proxy_login")
        initial = {name: getattr(provider, name) for name in cls.base_fields if name not in other_names}
        initial["option_defaults"] = _render_json(provider.option_defaults)
        return cls(initial=initial, provider=provider)

    def clean_base_url(self) -> str:
        """Return the address, with a scheme if it begins like example.org or localhost:8000.

        Private addresses get http, all others https.

        Raises:
            ValidationError: the address with its scheme is too long.
        """
        address: str = self.cleaned_data["base_url"].strip()
        if not _HOST_WITHOUT_SCHEME.match(address):
            return address
        completed = f"{'http' if is_private_address(f'http://{address}') else 'https'}://{address}"
        if len(completed) > _MAX_ADDRESS_CHARACTERS:
            raise forms.ValidationError(f"Enter an address of at most {_MAX_ADDRESS_CHARACTERS} characters.")
        return completed

    def clean_key_env(self) -> str:
        """Return the name of the environment variable.

        Raises:
            ValidationError: a new variable and a key were entered, of which only one can be used.
        """
        variable: str = self.cleaned_data["key_env"]
        is_new = variable and variable != (self.provider.key_env if self.provider else "")
        if is_new and self.cleaned_data.get("key"):
            raise forms.ValidationError("Enter the key or its variable, not both: clear one of the two fields.")
        return variable

    def build_connection(self) -> ConnectionSettings:
        """Return the connection settings. Call it only if `is_valid()` is True.

        The template fills in no field that is blank at the stored provider, unless the template changes.
        """
        data, provider = self.cleaned_data, self.provider
        has_same_template = provider is not None and provider.template == data["template"]
        kept_blank = [name for name in self.fields if has_same_template and getattr(provider, name, None) == ""]
        return fill_from_template(
            ConnectionSettings(
                **{name: data[name] for name in _CONNECTION_FIELDS},
                remove_headers=tuple(data["remove_headers"]),
                max_attempts=3 if data["max_attempts"] is None else data["max_attempts"],
                concurrency=8 if data["concurrency"] is None else data["concurrency"],
                network=NetworkSettings(
                    proxy=data["proxy_url"],
                    remove_proxy_login=data["remove_proxy_login"],
                    ca=data["ca_pem"],
                    client_certificate=data["client_certificate"],
                    client_key=data["client_key"],
                    query=data["query"],
                    key_header=data["key_header"],
                ),
            ),
            kept_blank,
        )


def _render_json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) if value else ""
