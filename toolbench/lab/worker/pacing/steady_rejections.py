"""Steady rejections: an endpoint that answers 429 at random does so at any load.

A lower limit does not make such rejections rarer, so a limit that falls with each of them would fall further and
further. Once their share is known, only more rejections than this share explains are taken as an overload.
"""

import math
from dataclasses import replace

from toolbench.lab.worker.pacing.state import PaceReport, PaceState

WINDOW_SECONDS = 120.0  # older rejections at low load are forgotten
LOW_LOAD = 0.5  # the load is low with at most this share of `answered_peak` in flight, or with one request
# The share is learned from at least this number of rejections at low load, of which the first is at least MIN_SECONDS
# ago. Rejections that a limit caused would end sooner at low load.
MIN_REJECTIONS, MIN_SECONDS = 3, 25.0
# The share is learned if at least this number of requests of the last minute were accepted since that first rejection.
MIN_ANSWERS = 10
# Range of shares that are learned: a lower one may come from a limit that is nearly reached, a higher one is an outage.
MIN_SHARE, MAX_SHARE = 0.05, 0.5
STEADY_SECONDS = 600.0  # time for which a share is used until it has to be learned anew
DEVIATIONS = 3.0  # standard deviations by which the number of rejections may exceed its mean


def note_low_load(state: PaceState, report: PaceReport, now: float) -> PaceState:
    """Return the state after a report, with the times of rejections at low load; without any if the load is high.

    Only a rejection with status 429 that asks for no wait counts. Another one counts only after the answer to a request
    that was sent later than the last counted one, because a provider that rejects all requests for a while has a limit.
    """
    others = state.count_others(report.session)
    peak = max(state.answered_peak, report.answered_in_flight + others if report.answers else 0)
    if report.peak + others > max(1.0, LOW_LOAD * peak):
        return replace(state, answered_peak=peak, low_load_rejections=())
    times = tuple(moment for moment in state.low_load_rejections if moment > now - WINDOW_SECONDS)
    # An answer this long after the last rejection belongs to a request that was sent after it.
    is_later_answer = bool(report.answers and times) and now - times[-1] > 1 + 2 * state.latency
    is_answered = state.is_answered or is_later_answer
    state = replace(state, answered_peak=peak, low_load_rejections=times, is_answered=is_answered)
    is_limited = any(rejection.is_limit and not rejection.wait_seconds for rejection in report.rejections)
    if not is_limited or (times and not is_answered):
        return state
    return replace(state, low_load_rejections=(*times, now), is_answered=False)


def learn_steady_share(state: PaceState, now: float) -> PaceState:
    """Return the state with the share of steady rejections, if enough rejections occurred at low load.

    The limits that these rejections caused are removed.
    """
    times = state.low_load_rejections
    if len(times) < MIN_REJECTIONS or now - times[0] < MIN_SECONDS:
        return state
    accepted, rejected = _count_since(state, times[0])
    share = rejected / max(1, accepted + rejected)
    if accepted < MIN_ANSWERS or not MIN_SHARE <= share <= MAX_SHARE:
        return state
    return replace(
        state,
        steady_share=share,
        steady_until=now + STEADY_SECONDS,
        low_load_rejections=(),
        limit=max(state.limit, float(state.answered_peak)),
        cap=None,
        rate=None,
        overloaded_at=now,
    )


def are_rejections_steady(state: PaceState, now: float) -> bool:
    """Return whether the rejections of the last minute, since the last overload, are explained by the known share.

    Returns:
        False also if no share is known.
    """
    if now >= state.steady_until:
        return False
    accepted, rejected = _count_since(state, state.overloaded_at)
    expected = state.steady_share * (accepted + rejected)
    return rejected <= expected + DEVIATIONS * math.sqrt(expected * (1 - state.steady_share))


def _count_since(state: PaceState, since: float) -> tuple[int, int]:
    """Return the numbers of accepted and rejected requests of the last minute, without those before `since`."""
    counts = [(accepted, rejected) for second, accepted, rejected, _ in state.seconds if second >= int(since)]
    return sum(accepted for accepted, _ in counts), sum(rejected for _, rejected in counts)
