"""Writes traces of the gateway over 90 days, without bodies: `python -m benchmarks.million.gateway_traces TRACES`.

Traces that exist are kept; only what is missing to TRACES is written. Their search texts are written too, as the sweep
does, so that a search for traces reads an index of that size.
"""

import sys
from datetime import datetime, timedelta
from random import Random

from django.utils import timezone

import benchmarks.django_setup  # noqa: F401
from benchmarks.million.multiply import DAYS, FAMILIES
from toolbench.lab.models import GatewayTrace
from toolbench.lab.traces.search_text import GATEWAY_TRACES, update_search_texts

ALIASES = 6
BATCH = 5_000
SEED = 1
_STATUSES = (*(200,) * 17, 400, 429, 502)


def main() -> None:
    write_traces(int(sys.argv[1]))
    update_search_texts(GATEWAY_TRACES, limit=sys.maxsize)


def write_traces(number: int) -> None:
    """Write traces until there are `number` of them."""
    missing, random = number - GatewayTrace.objects.count(), Random(SEED)
    first = timezone.now() - timedelta(days=DAYS)
    for start in range(0, missing, BATCH):
        positions = range(start, min(start + BATCH, missing))
        GatewayTrace.objects.bulk_create(
            _build_trace(random, first + timedelta(days=DAYS * position / missing)) for position in positions
        )


def _build_trace(random: Random, at: datetime) -> GatewayTrace:
    alias, status = f"alias-{random.randrange(ALIASES)}", random.choice(_STATUSES)
    is_answer = status == 200
    upstream_ms = random.lognormvariate(6, 0.6)
    return GatewayTrace(
        alias=alias,
        served_by=alias,
        model_name=f"vendor/{random.choice(FAMILIES)}",
        token_name="team",
        dialect=random.choice(("chat", "messages", "responses")),
        stream=random.random() < 0.5,
        at=at,
        status=status,
        code="" if is_answer else f"upstream_{status}",
        sentence="" if is_answer else f"The upstream answered with status {status}.",
        path="native",
        calls=random.randrange(3),
        requests=random.choice((1, 1, 1, 2)),
        input_tokens=random.randrange(200, 4_000),
        output_tokens=random.randrange(10, 800),
        duration_ms=upstream_ms + 3,
        upstream_ms=upstream_ms,
    )


if __name__ == "__main__":
    main()
