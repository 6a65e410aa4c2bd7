"""Rate control of a provider as pure functions: `adjust` returns the state after a report of a worker session.

- The concurrency limit grows with each answer until the first overload, by at most half when each of the requests in
  flight is answered. After an overload, it stays almost the same for about a minute and then rises faster and faster
  (the cubic curve of TCP CUBIC).
- A rejection means too many requests in flight if their number was close to the highest number that was accepted
  lately, or above it. The concurrency limit then falls below the number in flight.
- Otherwise, a rejection means too many requests per minute. If at least ten requests were accepted in the last 60
  seconds, their number becomes the limit of requests per minute, the rate, which then rises along a similar curve. If
  fewer were accepted, requests only pause, twice as long with each further rejection.
- In the first minute of requests, the rate is tentative, since the reason of the rejection may also be a limit for a
  shorter time or a short overload. If more requests than the rate are accepted in 60 seconds, the rate is forgotten.
- Rejections that are as frequent at low load as at high load do not change the limits (`steady_rejections`).
- Latency that doubles while more requests are in flight lowers the concurrency limit.
"""

import math
from dataclasses import replace
from typing import TypeVar

from toolbench.lab.worker.pacing.state import PaceReport, PaceSettings, PaceState, Rejection
from toolbench.lab.worker.pacing.steady_rejections import are_rejections_steady, learn_steady_share, note_low_load

WINDOW_SECONDS = 60
GROWTH = 0.5  # growth of the limit with each answer before the first overload
MAX_GROWTH = 0.06  # most growth by one report before the first overload, as a share of the limit
BUSY_SHARE = 0.85  # the limit grows only if at least this share of it, minus one request, was in flight
CURVE_SECONDS = 60.0  # time of use after which the concurrency limit is higher by CURVE_SHARE than after an overload
RATE_CURVE_SECONDS = 40.0  # time of use after which the rate, which begins lower by CURVE_SHARE, is the learned one
CURVE_SHARE = 0.03  # see CURVE_SECONDS and RATE_CURVE_SECONDS
# Answers with status 503 or 529 are no overload if at most this share of the last minute's requests was rejected: they
# may have reasons other than load.
MAX_UNAVAILABLE_SHARE = 0.03
# A rejection means too many requests per minute if the number in flight is at most this share of the highest number
# that was accepted lately or, if it is higher, of the limit after the last overload. A repeated overload also
# multiplies the concurrency limit by this share.
PROVEN_SHARE = 0.9
REACTION_SECONDS = 0.5  # time until all sessions know of an overload
REPEATED_SECONDS = 10.0  # a further overload within this time lowers the limit more
RATE_REPEATED_SECONDS = 30.0  # a further rejection within this time lowers the rate more and doubles the pause
# If more requests than the rate times this factor were accepted in the last minute, some of them were sent before the
# rate was learned, or the rate is wrong.
ACCEPTED_MARGIN = 1.02
MIN_RATE_REQUESTS = 10  # fewest accepted requests of the last minute from which a rate is learned
MIN_RATE_SECONDS = 5.0  # time of use before which a rate is not lowered
FIRST_SECONDS = 20.0  # time after the first request in which a rate can be forgotten repeatedly; later only once
MAX_HOLD_SECONDS = 30.0  # longest of the pauses that double
MAX_STEP_SECONDS = 2.0  # most time between two reports that counts as time of use
SESSION_TIMEOUT_SECONDS = 5.0  # time without a report after which a session is forgotten
RESET_SECONDS = 3600.0  # time without a report after which the control starts anew
PACE_MARGIN = 0.99  # share of the limits per minute in the settings up to which requests are sent
MEAN_WEIGHT = 0.2  # weight of the newest report in moving means

LATENCY_ANSWERS = 20  # answers of a model that are compared together
# The baseline of a model is its usual latency and the most requests that were in flight with such a latency.
SIMILAR_LATENCY, HIGH_LATENCY = 1.3, 2.0  # factors of the baseline's latency
SIMILAR_CONCURRENCY = 1.25  # factor of the baseline's requests in flight
LATENCY_CUT = 0.8  # factor of the concurrency limit after a high latency
MAX_MODELS = 50  # models whose latencies are kept

ValueType = TypeVar("ValueType")


def adjust(state: PaceState, report: PaceReport, settings: PaceSettings, *, now: float) -> PaceState:
    """Return the state after a report.

    Args:
        state: the state after the last report of any session.
        report: requests and answers of a session since its last report.
        settings: the settings of the provider.
        now: seconds since 1970.
    """
    if now - state.updated_at > RESET_SECONDS:
        state = replace(PaceState(), updated_at=now, point=(now, 0, 0, 0), tokens_per_request=state.tokens_per_request)
    state = note_low_load(_add_report(state, report, now), report, now)
    if report.pause_seconds:
        state = replace(state, held_until=max(state.held_until, now + report.pause_seconds))
    is_steady = settings.adaptive and are_rejections_steady(state, now)
    for rejection in report.rejections:
        state = _handle_rejection(state, rejection, report, settings, now)
    if settings.adaptive:
        state = learn_steady_share(state, now)
        if is_steady or not report.rejections:
            state = _grow(_forget_disproved_rate(state, report, now), report, now)
        state = _check_latency(state, report, now)
    return replace(state, limit=max(1.0, min(state.limit, settings.max_concurrency)), updated_at=now)


def compute_limit(state: PaceState, settings: PaceSettings) -> int:
    """Return the concurrency limit: the learned one, or less if the rate needs less.

    At a rate per minute, `latency * rate / 60` requests are in flight on average. The limit allows 30 % and 2 more.
    """
    if not settings.adaptive:
        return settings.max_concurrency
    rate = compute_rate(state, settings)
    limit = state.limit
    if rate is not None and state.latency:
        limit = min(limit, 1.3 * state.latency * rate / 60 + 2)
    return max(1, min(int(limit + 1e-6), settings.max_concurrency))


def compute_share(state: PaceState, settings: PaceSettings, session: str) -> int:
    """Return how many requests a session may have in flight: what the other sessions leave, at least an equal share.

    Without adaptive mode, the result is the whole limit, since the claims of trials enforce it over all workers.
    """
    limit = compute_limit(state, settings)
    if not settings.adaptive:
        return limit
    return max(math.ceil(limit / max(1, len(state.sessions))), limit - state.count_others(session))


def compute_rate(state: PaceState, settings: PaceSettings) -> float | None:
    """Return how many requests per minute may be sent, without regard to tokens; None if there is no limit."""
    rates = []
    if settings.requests_per_minute:
        rates.append(PACE_MARGIN * settings.requests_per_minute)
    if settings.adaptive and state.rate is not None:
        rates.append(_compute_learned_rate(state, state.rate))
    return max(1.0, min(rates)) if rates else None


def compute_intervals(state: PaceState, settings: PaceSettings) -> tuple[float, float]:
    """Return the seconds between two requests by the limit of requests and by the limit of tokens.

    Each is 0 if there is no limit. The second is also 0 before the first answer, since the tokens are unknown then.
    """
    rate = compute_rate(state, settings)
    request_seconds = 60 / rate if rate else 0.0
    tokens = settings.tokens_per_minute
    token_seconds = 60 * state.tokens_per_request / (PACE_MARGIN * tokens) if tokens else 0.0
    return request_seconds, token_seconds


def _follow_curve(part: float, start: float) -> float:
    """Return the factor by which a limit is multiplied: it rises slowly at first, then faster and faster.

    Args:
        part: time of use divided by CURVE_SECONDS or RATE_CURVE_SECONDS; it may exceed 1.
        start: factor at the start.
    """
    return start + CURVE_SHARE * part**3


def _compute_learned_rate(state: PaceState, rate: float) -> float:
    return rate * _follow_curve(state.rate_seconds / RATE_CURVE_SECONDS, 1 - CURVE_SHARE)


def _add_report(state: PaceState, report: PaceReport, now: float) -> PaceState:
    """Return the state with the figures of a report. Limits do not change."""
    seconds = [counts for counts in state.seconds if counts[0] > now - WINDOW_SECONDS]
    begins_without_rate = not seconds and state.rate is None
    tentative_until = now + WINDOW_SECONDS if begins_without_rate else state.tentative_until
    others = state.count_others(report.session)
    rejected = len(report.rejections)
    accepted = report.sent - rejected
    # Requests in flight beyond the limit were sent before it fell, and some of them were rejected.
    answered_in_flight = min(report.answered_in_flight + others, math.ceil(state.limit)) if report.answers else 0
    if seconds and seconds[-1][0] == int(now):
        second, old_accepted, old_rejected, in_flight = seconds.pop()
        counts = (second, old_accepted + accepted, old_rejected + rejected, max(in_flight, answered_in_flight))
        seconds.append(counts)
    elif report.sent or rejected or report.answers:
        seconds.append((int(now), accepted, rejected, answered_in_flight))
    sessions = {
        name: (in_flight, reported_at)
        for name, (in_flight, reported_at) in state.sessions.items()
        if reported_at > now - SESSION_TIMEOUT_SECONDS
    }
    sessions[report.session] = (report.in_flight, now)
    since, answers, rejections, in_flight = state.point
    latency, tokens = state.latency, state.tokens_per_request
    if answer_count := sum(count for count, _ in report.latencies.values()):
        latency = _add_to_mean(latency, sum(total for _, total in report.latencies.values()) / answer_count)
    if report.answers:
        tokens = _add_to_mean(tokens, report.tokens / report.answers)
    return replace(
        state,
        seconds=tuple(seconds),
        tentative_until=tentative_until,
        sessions=sessions,
        latency=latency,
        tokens_per_request=tokens,
        point=(
            since,
            answers + report.answers,
            rejections + rejected,
            max(in_flight, report.peak + others),
        ),
    )


def _add_to_mean(mean: float, value: float) -> float:
    return value if not mean else (1 - MEAN_WEIGHT) * mean + MEAN_WEIGHT * value


def _handle_rejection(
    state: PaceState, rejection: Rejection, report: PaceReport, settings: PaceSettings, now: float
) -> PaceState:
    """Return the state after a rejection.

    A rejection lowers the rate or the concurrency limit. It lowers neither without adaptive mode, if it belongs to the
    last overload, if rejections are steady, or if its status is 503 or 529 and at most MAX_UNAVAILABLE_SHARE of the
    requests were rejected.
    """
    if rejection.wait_seconds:
        state = replace(state, held_until=max(state.held_until, now + rejection.wait_seconds))
    if not settings.adaptive or now - rejection.age_seconds <= state.overloaded_at:
        return state
    if are_rejections_steady(state, now):
        return state
    if not rejection.is_limit and state.rejected_share <= MAX_UNAVAILABLE_SHARE:
        return state
    in_flight = rejection.in_flight + state.count_others(report.session)
    if in_flight <= 1 or in_flight <= PROVEN_SHARE * max(state.proven_in_flight, state.cap or 0):
        return _limit_rate(state, rejection, now)
    is_repeated = now - state.overloaded_at < REPEATED_SECONDS
    limit = max(1.0, min(state.limit, in_flight - 1) * (PROVEN_SHARE if is_repeated else 1))
    return _limit_concurrency(state, limit, now, hold_seconds=rejection.wait_seconds or REACTION_SECONDS)


def _limit_concurrency(state: PaceState, limit: float, now: float, *, hold_seconds: float) -> PaceState:
    """Return the state with this concurrency limit and a pause of at least `hold_seconds` from now."""
    is_repeated = now - state.overloaded_at < REPEATED_SECONDS
    return replace(
        state,
        limit=limit,
        cap=limit,
        seconds=tuple(
            (second, accepted, rejected, min(in_flight, math.ceil(limit)))
            for second, accepted, rejected, in_flight in state.seconds
        ),
        steady_seconds=0.0,
        limit_before=state.limit_before if is_repeated else state.limit,
        overloaded_at=now + REACTION_SECONDS,
        held_until=max(state.held_until, now + hold_seconds),
    )


def _limit_rate(state: PaceState, rejection: Rejection, now: float) -> PaceState:
    """Return the state with a lower rate, and with the concurrency limit as it was before this overload.

    No rate is learned from fewer than MIN_RATE_REQUESTS. If the answer asks for no wait, the pause after a new rate
    lasts until the oldest accepted requests of the last minute are older than a minute, at most as long as their age
    now, and at least a second. The rate does not fall if more requests than it were accepted in the last minute: it may
    be right, and the requests were sent before it was learned.
    """
    is_repeated = now - state.rate_limited_at < RATE_REPEATED_SECONDS
    rate, accepted = state.rate, float(state.accepted_per_minute)
    hold_seconds = min(2 * state.hold_seconds, MAX_HOLD_SECONDS) if is_repeated else 1.0
    if rate is None and accepted >= MIN_RATE_REQUESTS:
        rate = accepted
        if rejection.wait_seconds is None:
            oldest_age = now - next(second for second, count, _, _ in state.seconds if count > 0)
            hold_seconds = max(1.0, min(WINDOW_SECONDS + 1 - oldest_age, oldest_age))
    elif rate is not None and state.rate_seconds >= MIN_RATE_SECONDS:
        learned = _compute_learned_rate(state, rate)
        if accepted <= ACCEPTED_MARGIN * learned:
            rate = min(accepted, learned * (0.8 if is_repeated else 0.95))
    is_same_overload = now - state.overloaded_at < REPEATED_SECONDS
    limit = max(state.limit, state.limit_before) if is_same_overload else state.limit
    return replace(
        state,
        limit=limit,
        cap=limit,
        steady_seconds=0.0,
        overloaded_at=now + REACTION_SECONDS,
        rate=None if rate is None else max(1.0, rate),
        rate_seconds=0.0,
        rate_limited_at=now,
        hold_seconds=hold_seconds if is_repeated else 1.0,
        held_until=max(state.held_until, now + hold_seconds),
    )


def _forget_disproved_rate(state: PaceState, report: PaceReport, now: float) -> PaceState:
    """Return the state without its rate if the rate is tentative and more requests were accepted in a minute."""
    if state.rate is None or now >= state.tentative_until:
        return state
    in_flight = report.in_flight + state.count_others(report.session)
    if state.accepted_per_minute - in_flight <= ACCEPTED_MARGIN * state.rate:  # those in flight may be rejected
        return state
    return replace(state, rate=None, tentative_until=min(state.tentative_until, state.seconds[0][0] + FIRST_SECONDS))


def _grow(state: PaceState, report: PaceReport, now: float) -> PaceState:
    """Return the state with higher limits; a limit rises only if it was in use since the last report."""
    if not report.answers or now < state.held_until:
        return state
    elapsed = min(now - state.updated_at, MAX_STEP_SECONDS)
    if report.has_waited and state.rate is not None:
        state = replace(state, rate_seconds=state.rate_seconds + elapsed)
    if report.peak + state.count_others(report.session) < BUSY_SHARE * state.limit - 1:
        return state
    if state.cap is None:
        return replace(state, limit=state.limit + min(GROWTH * report.answers, MAX_GROWTH * state.limit))
    steady_seconds = state.steady_seconds + elapsed
    return replace(
        state, steady_seconds=steady_seconds, limit=state.cap * _follow_curve(steady_seconds / CURVE_SECONDS, 1.0)
    )


def _check_latency(state: PaceState, report: PaceReport, now: float) -> PaceState:
    """Return the state after the latencies of a report.

    The concurrency limit falls if a model answers much more slowly than before, with more requests in flight.
    """
    in_flight = report.peak + state.count_others(report.session)
    for model, (count, seconds) in report.latencies.items():
        old_count, old_seconds, old_in_flight = state.windows.get(model, (0, 0.0, 0))
        window = (old_count + count, old_seconds + seconds, max(old_in_flight, in_flight))
        windows = {**state.windows, model: window}
        if window[0] >= LATENCY_ANSWERS:
            del windows[model]
            state = _compare_latency(state, model, window[1] / window[0], window[2], now)
        state = replace(state, windows=_keep_newest(windows))
    return state


def _compare_latency(state: PaceState, model: str, latency: float, in_flight: int, now: float) -> PaceState:
    """Return the state after a comparison of the model's mean latency with its baseline.

    Args:
        state: the state.
        model: name of the model.
        latency: mean seconds of the model's last LATENCY_ANSWERS answers.
        in_flight: most requests in flight during these answers.
        now: seconds since 1970.
    """
    baseline, baseline_in_flight = state.baselines.get(model, (latency, in_flight))
    if latency <= SIMILAR_LATENCY * baseline:
        new_baseline = (min(latency, baseline), max(in_flight, baseline_in_flight))
    elif in_flight <= baseline_in_flight:  # the model has become slower for another reason
        new_baseline = (latency, in_flight)
    else:
        new_baseline = (baseline, baseline_in_flight)
        has_more_in_flight = in_flight > SIMILAR_CONCURRENCY * baseline_in_flight
        is_repeated = now - state.overloaded_at < REPEATED_SECONDS
        if latency > HIGH_LATENCY * baseline and has_more_in_flight and not is_repeated:
            limit = max(float(baseline_in_flight), LATENCY_CUT * min(state.limit, in_flight))
            state = _limit_concurrency(state, min(limit, state.limit), now, hold_seconds=0.0)
    return replace(state, baselines=_keep_newest({**state.baselines, model: new_baseline}))


def _keep_newest(by_model: dict[str, ValueType]) -> dict[str, ValueType]:
    return dict(list(by_model.items())[-MAX_MODELS:])
