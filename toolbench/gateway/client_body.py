"""Token and body of a client's request. A large body is parsed in a thread."""

import asyncio

from aiohttp import web

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import read_json
from toolbench.gateway.request import MAX_BODY_BYTES, Dialect, GatewayError, GatewayRequest, refuse

LARGE_BYTES = 64 * 1024  # bodies of this size and above are parsed and masked in a thread


def read_token(request: web.Request) -> str:
    """Return the bearer token of a request, else the value of Anthropic's header x-api-key, else ""."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")


async def read_body(request: web.Request) -> bytes:
    """Return the body of a request.

    Raises:
        GatewayError: the body has more than MAX_BODY_BYTES, or does not match its headers.
    """
    try:
        return await request.read()
    except web.RequestPayloadError:
        raise refuse(
            "The body does not match its Content-Encoding or Transfer-Encoding header. Encode it as the header says, "
            "or leave the header out."
        ) from None
    except web.HTTPRequestEntityTooLarge:
        raise GatewayError(
            413, "request_too_large", f"The body has more than {MAX_BODY_BYTES:,} bytes. Send less."
        ) from None


async def parse_body(dialect: Dialect, body: bytes) -> GatewayRequest:
    """Parse the body of a request.

    A body of LARGE_BYTES or more is parsed in a thread, so that other requests need not wait for it.

    Raises:
        GatewayError: the body is not JSON, or a field is missing, unknown or not valid.
    """
    if len(body) < LARGE_BYTES:
        return _parse_body(dialect, body)
    return await asyncio.to_thread(_parse_body, dialect, body)


def _parse_body(dialect: Dialect, body: bytes) -> GatewayRequest:
    try:
        value = read_json(body.decode())
    except (InvalidJsonError, UnicodeDecodeError) as error:
        raise refuse(f"The body is not JSON: {str(error)[:200]}. Send a whole JSON object in UTF-8.") from None
    return dialect.parse(value)
