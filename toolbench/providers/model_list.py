"""Requests for a provider's list of models, and for other JSON."""

from toolbench.engine.events import ExchangeError
from toolbench.engine.types import JsonObject
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.http.client import HttpClient
from toolbench.providers.http.error_body import parse_json
from toolbench.providers.http.error_codes import build_exchange_error, classify_unreadable
from toolbench.providers.http.exchange import Exchange


class ProviderRequestError(Exception):
    """Failure of a request to a provider.

    Attributes:
        error: the failure, classified by the table of error codes.
    """

    def __init__(self, error: ExchangeError) -> None:
        self.error = error
        super().__init__(error.message)


async def list_models(endpoint: Endpoint) -> tuple[str, ...]:
    """Request the provider's list of models and return their ids.

    The ids are in the provider's order and without repeats. Anthropic sends pages of at most 1,000 models; only the
    first page is requested.

    Raises:
        ProviderRequestError: the request failed or its response is not a list of models.
    """
    payload = await request_json(endpoint, "models?limit=1000" if endpoint.wire == "anthropic" else "models")
    entries = payload.get("data", payload.get("models")) if isinstance(payload, dict) else payload
    if not isinstance(entries, list):
        raise ProviderRequestError(build_exchange_error("malformed_answer", "The list of models has an unknown shape."))
    return tuple(dict.fromkeys(model_id for model_id in map(_find_model_id, entries) if model_id))


async def request_json(endpoint: Endpoint, path: str, body: bytes | None = None) -> object:
    """Send a request over a new connection and return the JSON of its response.

    The request is a POST of `body`, or a GET if `body` is None.

    Raises:
        ProviderRequestError: the request failed, or the response is neither a JSON object nor a JSON list.
    """
    async with HttpClient() as client:
        exchange = client.build_exchange(endpoint, path, body)
        await client.send(exchange)
    return _parse_payload(exchange)


def _parse_payload(exchange: Exchange) -> object:
    """Parse the JSON of a response.

    Raises:
        ProviderRequestError: the request failed, or the response is neither a JSON object nor a JSON list.
    """
    payload = parse_json(exchange.body)
    # For `find_error` a JSON list is an error, because no answer of a model is a list.
    is_list = exchange.exception is None and exchange.status == 200 and isinstance(payload, list)
    error = None if is_list else exchange.find_error()
    if error is None and payload is None:
        error = classify_unreadable(exchange.status, exchange.body)
    if error is not None:
        raise ProviderRequestError(error)
    return payload


def _find_model_id(entry: object) -> str:
    """Return the model id of an entry, "" if it has none.

    An entry is text, or an object with an `id` or a `name`.
    """
    if isinstance(entry, dict):
        fields: JsonObject = entry
        entry = fields.get("id") or fields.get("name")
    return entry if isinstance(entry, str) else ""
