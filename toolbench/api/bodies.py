"""Parser of JSON bodies and query strings, and renderer of JSON answers."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, cast

from django.http import HttpRequest
from django.utils.datastructures import MultiValueDict
from ninja.parser import Parser
from ninja.renderers import BaseRenderer
from ninja.responses import NinjaJSONEncoder

from toolbench.api.problems import ProblemError
from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import read_json

JSON_TYPE = "application/json"


class BodyParser(Parser):
    """Parser that refuses bodies that are not JSON, and characters that PostgreSQL cannot store."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        """Return the JSON value of the body.

        Raises:
            ProblemError: the header Content-Type does not say JSON (415), the body is not JSON in UTF-8 (400), or it
                contains a NUL or a lone surrogate (422).
        """
        if request.content_type != JSON_TYPE:
            raise ProblemError(415, f"Send the body as JSON with the header Content-Type: {JSON_TYPE}.")
        value = _parse_json(request.body)
        if name := next(_iter_unstorable_names(value, "body"), None):
            raise ProblemError(422, f"Remove NUL characters and lone surrogates from {name}.")
        return cast(dict[str, Any], value)

    def parse_querydict(
        self, data: MultiValueDict[str, str], list_fields: list[str], request: HttpRequest
    ) -> dict[str, Any]:
        """Return the parameters of the query string.

        Raises:
            ProblemError: a name or value contains a NUL or a lone surrogate (422).
        """
        parameters: dict[str, Any] = super().parse_querydict(data, list_fields, request)
        if name := next(_iter_unstorable_names(parameters, "query"), None):
            raise ProblemError(422, f"Remove NUL characters and lone surrogates from {name}.")
        return parameters


class JsonRenderer(BaseRenderer):
    """Renderer of strict JSON. It replaces NaN and infinities, which JSON does not have, by null."""

    media_type = JSON_TYPE

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> str:
        """Return the JSON text of an answer."""
        try:
            return json.dumps(data, cls=NinjaJSONEncoder, allow_nan=False)
        except ValueError:
            return json.dumps(_replace_nonfinite(data), cls=NinjaJSONEncoder, allow_nan=False)


def _parse_json(body: bytes) -> Any:
    try:
        return read_json(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ProblemError(400, f"Send the body in UTF-8: byte {error.start} is not.") from error
    except InvalidJsonError as error:
        raise ProblemError(400, f"Send the body as JSON. It cannot be read: {error}.") from error


def _iter_unstorable_names(value: Any, name: str) -> Iterator[str]:
    """Yield where a JSON value has strings that PostgreSQL cannot store, such as `city` or `a name in body`.

    Args:
        value: the JSON value.
        name: name of the value: the name of its member, "body" or "query".
    """
    if isinstance(value, str):
        if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
            yield name
    elif isinstance(value, Mapping):
        for key, member in value.items():
            yield from _iter_unstorable_names(str(key), f"a name in {name}")
            yield from _iter_unstorable_names(member, str(key)[:80])
    elif isinstance(value, list):
        for element in value:
            yield from _iter_unstorable_names(element, name)


def _replace_nonfinite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _replace_nonfinite(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_nonfinite(element) for element in value]
    return value
