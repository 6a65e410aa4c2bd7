"""Whom `manage.py eval` asks: OpenRouter made from its variables, keys and local servers looked at before anything is
launched."""

import socket
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from toolbench.engine.messages import JsonObject
from toolbench.lab import builtin_data
from toolbench.lab.credentials.headers import FIELDS as HEADER_FIELDS
from toolbench.lab.credentials.headers import change_headers, secret_names
from toolbench.lab.credentials.keys import KeyNotInEnvironment, KeyUnavailable, endpoint_headers, endpoint_key
from toolbench.lab.credentials.provider_secrets import environment_secrets, provider_secrets
from toolbench.lab.endpoints.urls import address_trouble, prefix_trouble, same_place
from toolbench.lab.management.eval.names import EvalRefused
from toolbench.lab.management.eval.options import PREFIX, EvalOptions
from toolbench.lab.management.eval.request import OPENROUTER
from toolbench.lab.models import Model, Provider, ServiceAddress

KEY = f"{PREFIX}API_KEY"
_HEADERS = {"HTTP_REFERER": "HTTP-Referer", "X_TITLE": "X-Title"}


def bring_openrouter_up_to_date(environment: Mapping[str, str], options: EvalOptions) -> tuple[str, ...]:
    """With a key in the environment there is an OpenRouter provider, and it has the address and headers that the
    environment names. Says what it changed; without a key, or where other providers are asked for, it changes nothing.
    Raises EvalRefused."""
    if not environment.get(KEY, "").strip() or (options.provider and not _names_openrouter(options.provider)):
        return ()
    if not Provider.objects.filter(template=OPENROUTER).exists():
        builtin_data.load()
    notes: list[str] = []
    for provider in Provider.objects.filter(template=OPENROUTER):
        if changed := _bring(provider, environment):
            notes.append(f"{provider.name} now has {', '.join(changed)} from the environment.")
    return tuple(notes)


def _names_openrouter(words: str) -> bool:
    return any(fnmatchcase(OPENROUTER, word.strip().lower()) for word in words.split(",")) or words == "all"


def _bring(provider: Provider, environment: Mapping[str, str]) -> list[str]:
    """What differed from the row and is changed in it."""
    named = _named(provider, environment)
    for name, value in named.items():
        setattr(provider, name, value)
    headers = _headers(provider, environment)
    change_headers(provider, headers)
    provider.save(update_fields=[*named, *(HEADER_FIELDS if headers else ())])
    return [*sorted(named), *(["headers"] if headers else [])]


def _named(provider: Provider, environment: Mapping[str, str]) -> JsonObject:
    said: JsonObject = {}
    if f"{PREFIX}BASE_URL" in environment:
        said["base_url"] = _address(environment, provider)
    if f"{PREFIX}API_PREFIX" in environment:
        said["api_prefix"] = environment[f"{PREFIX}API_PREFIX"].strip()
        if trouble := prefix_trouble(said["api_prefix"], provider_secrets(provider, environment_secrets(environment))):
            raise EvalRefused(f"{PREFIX}API_PREFIX cannot be used. {trouble}")
    return {name: value for name, value in said.items() if value != getattr(provider, name)}


def _address(environment: Mapping[str, str], provider: Provider) -> str:
    text = environment[f"{PREFIX}BASE_URL"]
    trouble = address_trouble(text, provider_secrets(provider, environment_secrets(environment)))
    bound = provider.key_encrypted is not None or secret_names(provider.header_names)
    if not trouble and bound and not same_place(text, provider.base_url):
        trouble = f"It leads to another host than the stored key or headers of {provider.name}: edit that on its page."
    if trouble:
        raise EvalRefused(f"{PREFIX}BASE_URL cannot be used. {trouble}")
    return text.strip().rstrip("/")


def _headers(provider: Provider, environment: Mapping[str, str]) -> JsonObject:
    named = {name: environment.get(PREFIX + variable, "").strip() for variable, name in _HEADERS.items()}
    try:
        stored = endpoint_headers(provider)
    except KeyUnavailable as error:
        raise EvalRefused(str(error)) from error
    return {name: value for name, value in named.items() if value and value != stored.get(name)}


def check_reachable(models: Iterable[Model]) -> None:
    """Raises EvalRefused for a key that cannot be had and for a local server that does not run here."""
    models = tuple(models)
    for provider in {model.provider_id: model.provider for model in models}.values():
        try:
            endpoint_key(provider)
            endpoint_headers(provider)
        except KeyNotInEnvironment as error:
            raise EvalRefused(f"{provider.key_env} is not set, and {provider.name} needs it.") from error
        except KeyUnavailable as error:
            raise EvalRefused(str(error)) from error
    for name in dict.fromkeys(_service(model) for model in models):
        _check_service(name)


def _service(model: Model) -> str:
    return "" if model.provider.base_url else model.provider.service


def _check_service(name: str) -> None:
    if not name:
        return
    address = ServiceAddress.objects.filter(name=name).first()
    if address is None:
        raise EvalRefused(f"The local server {name} does not run: start it with `make up`.")
    if address.host != socket.gethostname():
        raise EvalRefused(f"The local server {name} runs on {address.host} and serves that machine only.")


def welcome_back(providers: Iterable[Provider]) -> None:
    """A provider that was paused for its key goes on: the key was found."""
    Provider.objects.filter(pk__in=[provider.pk for provider in providers]).update(paused_reason="")
