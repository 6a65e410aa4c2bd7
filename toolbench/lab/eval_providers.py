"""Whom `manage.py eval` asks: OpenRouter made from its variables, keys and local servers looked at before anything is
launched, timeouts and limits lent to providers while the command runs."""

import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from toolbench.engine.messages import JsonObject
from toolbench.lab import catalogue
from toolbench.lab.addresses import address_trouble, same_place
from toolbench.lab.eval_options import PREFIX, EvalOptions
from toolbench.lab.eval_request import OPENROUTER, EvalRefused
from toolbench.lab.keys import KeyUnavailable, endpoint_key
from toolbench.lab.models import Model, Provider, ServiceAddress

KEY = f"{PREFIX}API_KEY"
NO_LIMIT_SECONDS = 24 * 3600.0
_HEADERS = {"HTTP_REFERER": "HTTP-Referer", "X_TITLE": "X-Title"}


def bring_openrouter_up_to_date(environment: Mapping[str, str]) -> tuple[str, ...]:
    """With a key in the environment there is an OpenRouter provider, and it has the address and headers that the
    environment names. Says what it changed; without a key it changes nothing. Raises EvalRefused."""
    if not environment.get(KEY, "").strip():
        return ()
    if not Provider.objects.filter(template=OPENROUTER).exists():
        catalogue.load()
    notes: list[str] = []
    for provider in Provider.objects.filter(template=OPENROUTER):
        wanted = _named(provider, environment)
        if wanted:
            Provider.objects.filter(pk=provider.pk).update(**wanted)
            notes.append(f"{provider.name} now has {', '.join(sorted(wanted))} from the environment.")
    return tuple(notes)


def _named(provider: Provider, environment: Mapping[str, str]) -> JsonObject:
    """What differs from the row."""
    said: JsonObject = {}
    if f"{PREFIX}BASE_URL" in environment:
        said["base_url"] = _address(environment[f"{PREFIX}BASE_URL"], provider)
    if f"{PREFIX}API_PREFIX" in environment:
        said["api_prefix"] = environment[f"{PREFIX}API_PREFIX"].strip()
    headers = {name: environment.get(PREFIX + variable, "").strip() for variable, name in _HEADERS.items()}
    if any(headers.values()):
        said["headers"] = {**provider.headers, **{name: value for name, value in headers.items() if value}}
    return {name: value for name, value in said.items() if value != getattr(provider, name)}


def _address(text: str, provider: Provider) -> str:
    trouble = address_trouble(text)
    if not trouble and provider.key_encrypted is not None and not same_place(text, provider.base_url):
        trouble = f"It leads to another host than the stored key of {provider.name}: change both on its page."
    if trouble:
        raise EvalRefused(f"{PREFIX}BASE_URL cannot be used. {trouble}")
    return text.strip().rstrip("/")


def check_reachable(models: Iterable[Model]) -> None:
    """Raises EvalRefused for a key that cannot be had and for a local server that does not run here."""
    models = tuple(models)
    for provider in {model.provider_id: model.provider for model in models}.values():
        try:
            endpoint_key(provider)
        except KeyUnavailable as error:
            here = provider.key_source == Provider.KeySource.ENVIRONMENT
            sentence = f"{provider.key_env} is not set, and {provider.name} needs it." if here else str(error)
            raise EvalRefused(sentence) from error
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


@contextmanager
def lent(providers: Iterable[Provider], options: EvalOptions) -> Iterator[None]:
    """Timeouts and the number of trials at once, given to the providers' rows, so that they hold for every worker, and
    taken back at the end."""
    wanted = _limits(options)
    before = {provider.pk: {name: getattr(provider, name) for name in wanted} for provider in providers}
    if wanted:
        Provider.objects.filter(pk__in=before).update(**wanted)
    try:
        yield
    finally:
        for pk, values in before.items():
            if values:
                Provider.objects.filter(pk=pk).update(**values)


def _limits(options: EvalOptions) -> JsonObject:
    read = options.read_timeout if options.read_timeout is not None else options.timeout
    limits = {"connect_seconds": _seconds(options.open_timeout), "read_seconds": _seconds(read)}
    limits["concurrency"] = options.jobs
    return {name: value for name, value in limits.items() if value is not None}


def _seconds(given: float | None) -> float | None:
    return NO_LIMIT_SECONDS if given is not None and given <= 0 else given
