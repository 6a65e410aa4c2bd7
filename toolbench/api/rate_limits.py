"""Limits of API requests per minute. All processes count in the broker's database."""

import logging
import time

from django.conf import settings
from redis import Redis, RedisError

from toolbench.api.problems import ProblemError

logger = logging.getLogger(__name__)

WINDOW_SECONDS = 60
SAFE_METHODS = ("GET", "HEAD")  # methods that change nothing
_TIMEOUT_SECONDS = 1  # of connections and of commands
_CLIENT = Redis.from_url(
    settings.REDIS_URL, socket_connect_timeout=_TIMEOUT_SECONDS, socket_timeout=_TIMEOUT_SECONDS, decode_responses=True
)


def check_rate(name: str, method: str) -> None:
    """Count a request of a token or user, and check the number of its requests in this minute.

    Args:
        name: name of the counter, such as "token:7" or "user:3".
        method: HTTP method; reads and changes have separate limits.

    Raises:
        ProblemError: the limit is exceeded (429); its header Retry-After gives the seconds to wait.
    """
    kind = "reads" if method in SAFE_METHODS else "changes"
    limit = settings.API_READS_PER_MINUTE if kind == "reads" else settings.API_CHANGES_PER_MINUTE
    if _count(f"{kind}:{name}") > limit:
        raise _build_limit_error(f"A token or signed-in user may send at most {limit:,} {kind} a minute.")


def count_refusal(address: str) -> None:
    """Count a request with an invalid token from an IP address, and check how many there were in this minute.

    Requests with a valid token from the same address are not counted.

    Raises:
        ProblemError: the address sent more than API_REFUSALS_PER_MINUTE such requests in this minute (429).
    """
    if _count(f"refused:{address}") > settings.API_REFUSALS_PER_MINUTE:
        raise _build_limit_error("Too many requests with an invalid token came from this address.")


def _build_limit_error(sentence: str) -> ProblemError:
    seconds = WINDOW_SECONDS - int(time.time()) % WINDOW_SECONDS
    return ProblemError(429, f"{sentence} Wait {seconds} seconds.", {"Retry-After": str(seconds)})


def _build_key(name: str) -> str:
    return f"api:{int(time.time()) // WINDOW_SECONDS}:{name}"


def _count(name: str) -> int:
    """Add one to a counter and return its value in this minute; return 0 if the broker does not answer."""
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
