"""Limits of requests per minute, counted in the broker's database, which all processes share."""

import logging
import time

from django.conf import settings
from redis import Redis, RedisError

from toolbench.api.problems import ProblemError

logger = logging.getLogger(__name__)

WINDOW_SECONDS = 60
SAFE_METHODS = ("GET", "HEAD")
_CONNECT_SECONDS = 1
_CLIENT = Redis.from_url(
    settings.REDIS_URL, socket_connect_timeout=_CONNECT_SECONDS, socket_timeout=_CONNECT_SECONDS, decode_responses=True
)


def check_rate(name: str, method: str) -> None:
    """Count a request of a token or person.

    Raises:
        ProblemError: more were sent in this minute than settings allow; the header Retry-After says when to go on.
    """
    kind = "reads" if method in SAFE_METHODS else "changes"
    limit = settings.API_READS_PER_MINUTE if kind == "reads" else settings.API_CHANGES_PER_MINUTE
    if _count(f"{kind}:{name}") > limit:
        raise _build_error(f"At most {limit:,} {kind} a minute are accepted from one token.")


def count_refusal(address: str) -> None:
    """Count a wrong token that an address sent. Valid tokens from that address are not affected.

    Raises:
        ProblemError: it sent more in this minute than settings allow.
    """
    if _count(f"refused:{address}") > settings.API_REFUSALS_PER_MINUTE:
        raise _build_error("Too many requests with a wrong token came from this address.")


def _build_error(sentence: str) -> ProblemError:
    seconds = WINDOW_SECONDS - int(time.time()) % WINDOW_SECONDS
    return ProblemError(429, f"{sentence} Wait {seconds} seconds.", {"Retry-After": str(seconds)})


def _build_key(name: str) -> str:
    return f"api:{int(time.time()) // WINDOW_SECONDS}:{name}"


def _count(name: str) -> int:
    """Count one; return the number in this minute, 0 if the broker does not answer."""
    key = _build_key(name)
    try:
        with _CLIENT.pipeline() as pipeline:
            pipeline.incr(key)
            pipeline.expire(key, 2 * WINDOW_SECONDS)
            count, _ = pipeline.execute()
    except RedisError as error:
        logger.warning("Requests are not limited, since the broker does not answer: %s", error)
        return 0
    return int(count)
