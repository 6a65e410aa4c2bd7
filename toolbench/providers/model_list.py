"""Requests for the list of models that a provider has."""

from toolbench.engine.events import ExchangeError
from toolbench.engine.types import JsonObject
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.http.client import HttpClient
from toolbench.providers.http.error_body import parse_json
from toolbench.providers.http.error_codes import build_exchange_error, classify_unreadable
from toolbench.providers.http.exchange import Exchange


class ProviderRequestError(Exception):
    """Request to a provider that failed; `error` is classified by the table of error codes."""

    def __init__(self, error: ExchangeError) -> None:
        self.error = error
        super().__init__(error.message)


async def list_models(endpoint: Endpoint) -> tuple[str, ...]:
    """Return the model ids of the provider's `/models`, in its order.

    Anthropic sends pages of at most 1,000 models; only the first page is read.

    Raises:
        ProviderRequestError: the provider sent no list of models.
    """
    payload = await request_json(endpoint, "models?limit=1000" if endpoint.wire == "anthropic" else "models")
    entries = payload.get("data", payload.get("models")) if isinstance(payload, dict) else payload
    if not isinstance(entries, list):
        raise ProviderRequestError(build_exchange_error("malformed_answer", "The list of models has an unknown shape."))
    return tuple(dict.fromkeys(name for name in map(_find_model_id, entries) if name))


async def request_json(endpoint: Endpoint, path: str, body: bytes | None = None) -> object:
    """Send one request over a new connection and return its JSON.

    It is a POST of `body`, or a GET without it.

    Raises:
        ProviderRequestError: the request failed or the response is not JSON.
    """
    async with HttpClient() as client:
        exchange = client.open(endpoint, path, body)
        await client.send(exchange)
    return _check_payload(exchange)


def _check_payload(exchange: Exchange) -> object:
    payload = parse_json(exchange.body)
    listed = exchange.exception is None and exchange.status == 200 and isinstance(payload, list)
    error = None if listed else exchange.error()
    if error is None and payload is None:
        error = classify_unreadable(exchange.status, exchange.body)
    if error is not None:
        raise ProviderRequestError(error)
    return payload


def _find_model_id(entry: object) -> str:
    """Return the id of an entry: the entry itself, or its `id` or `name`.

    Together sends a bare list of objects, others a list of strings; some use `name` in place of `id`.
    """
    if isinstance(entry, dict):
        fields: JsonObject = entry
        entry = fields.get("id") or fields.get("name")
    return entry if isinstance(entry, str) else ""
