"""Storage of the rate control that all worker sessions of a provider share.

All times come from the clock of the database.
"""

import json
from dataclasses import replace

from django.db import connection, transaction

from toolbench.lab.models import Provider
from toolbench.lab.sql import load_statement
from toolbench.lab.worker.pacing.controller import adjust, compute_intervals, compute_limit, compute_rate, compute_share
from toolbench.lab.worker.pacing.send_schedule import SessionPace
from toolbench.lab.worker.pacing.state import FIRST_LIMIT, PaceReport, PaceSettings, PaceState
from toolbench.lab.worker.pacing.steady_rejections import are_rejections_steady

POINT_SECONDS = 10.0  # shortest time that a point of the chart of the rate control covers
MAX_POINT_SECONDS = 60.0  # longest time that a point covers; a point that began earlier is dropped

_READ_PACE = load_statement("worker/pacing/read_pace")
_WRITE_PACE = load_statement("worker/pacing/write_pace")
_TAKE_SEND_TIMES = load_statement("worker/pacing/take_send_times")
_ADD_POINT = load_statement("worker/pacing/add_point")


def read_settings(provider: Provider) -> PaceSettings:
    """Return the settings of a provider that decide how fast requests are sent."""
    return PaceSettings(
        adaptive=provider.adaptive,
        max_concurrency=provider.concurrency,
        requests_per_minute=provider.requests_per_minute,
        tokens_per_minute=provider.tokens_per_minute,
    )


def share_report(provider_id: int, report: PaceReport, settings: PaceSettings) -> SessionPace | None:
    """Adjust the limits of a provider to the report of a worker session.

    If a limit of requests or tokens per minute has changed since the last report of any session, the send times that
    were reserved before no longer count.

    Returns:
        The limits of the session until its next report; None if the provider was deleted.
    """
    first_limit = min(FIRST_LIMIT, settings.max_concurrency) if settings.adaptive else settings.max_concurrency
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_READ_PACE, {"provider": provider_id, "concurrency": first_limit})
        row = cursor.fetchone()
        if row is None:
            return None
        before, now = PaceState.from_json(json.loads(row[0])), float(row[1])
        state = adjust(before, report, settings, now=now)
        limit = compute_limit(state, settings)
        state = _add_point(provider_id, state, settings, now)
        state = replace(state, rate_limits=settings.rate_limits)
        have_rates_changed = before.updated_at > 0 and before.rate_limits != settings.rate_limits
        token_delay = 0.0  # seconds to add to the next send time; negative if answers had fewer tokens than expected
        if settings.tokens_per_minute and not have_rates_changed:
            unexpected_tokens = report.tokens - report.answers * before.tokens_per_request
            token_delay = 60 * unexpected_tokens / settings.tokens_per_minute
        cursor.execute(
            _WRITE_PACE,
            {
                "provider": provider_id,
                "state": json.dumps(state.to_json()),
                "concurrency": limit,
                "held_until": state.held_until,
                "token_seconds": token_delay,
                "resets": have_rates_changed,
            },
        )
    request_seconds, token_seconds = compute_intervals(state, settings)
    return SessionPace(
        in_flight=compute_share(state, settings, report.session),
        held_seconds=max(0.0, state.held_until - now),
        request_seconds=request_seconds,
        token_seconds=token_seconds,
        pauses_after_rejection=not are_rejections_steady(state, now),
    )


def _add_point(provider_id: int, state: PaceState, settings: PaceSettings, now: float) -> PaceState:
    """Add the point of the state to the chart, and return the state with a new point.

    Before the point covers POINT_SECONDS, nothing is added and the state is returned unchanged.
    """
    since, answers, rejections, in_flight = state.point
    if now - since < POINT_SECONDS:
        return state
    if now - since <= MAX_POINT_SECONDS:
        with connection.cursor() as cursor:
            cursor.execute(
                _ADD_POINT,
                {
                    "provider": provider_id,
                    "seconds": now - since,
                    "concurrency": compute_limit(state, settings),
                    "in_flight": in_flight,
                    "answers": answers,
                    "rejections": rejections,
                    "requests_per_minute": compute_rate(state, settings),
                },
            )
    return replace(state, point=(now, 0, 0, 0))


def reserve_send_times(provider_id: int, requests: int, pace: SessionPace) -> tuple[float, ...]:
    """Reserve send times for requests, after those that all worker sessions of the provider have reserved.

    Returns:
        For each request, in order, the seconds until it may be sent (0 or less: at once); () if the provider was
        deleted.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _TAKE_SEND_TIMES,
            {
                "provider": provider_id,
                "requests": requests,
                "request_seconds": pace.request_seconds,
                "token_seconds": pace.token_seconds,
            },
        )
        row = cursor.fetchone()
    if row is None:
        return ()
    intervals = (pace.request_seconds, pace.token_seconds)
    limits = [(first_delay, interval) for first_delay, interval in zip(row, intervals, strict=True) if interval]
    return tuple(
        max((first_delay + index * interval for first_delay, interval in limits), default=0.0)
        for index in range(requests)
    )
