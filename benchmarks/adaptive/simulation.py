"""Simulation of the rate control in virtual time: the worker's code without its database and network."""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.adaptive.hidden_limits import HiddenLimits
from toolbench.lab.worker.pacing.controller import adjust, compute_intervals, compute_limit, compute_share
from toolbench.lab.worker.pacing.send_schedule import PacedRequest, RequestResult, SendSchedule, SessionPace
from toolbench.lab.worker.pacing.state import PaceSettings, PaceState
from toolbench.lab.worker.pacing.steady_rejections import are_rejections_steady

REPORT_SECONDS = 0.5
START = 1_000_000_020.0  # of the virtual clock, within a minute

Latency = Callable[[random.Random, int], float]


@dataclass(slots=True)
class SimulatedWorkers:
    """Workers that always have another request for an endpoint with hidden limits.

    Attributes:
        latency: returns the seconds of an answer; called with a random generator and the requests in flight.
        sessions: number of worker sessions.
        wait_seconds: pause that rejections ask for; None if they name none.
        names_limit: whether rejections have status 429; otherwise they have 503.
        overhead: seconds from an answer to the next request of its trial.
        history: time, concurrency limit and requests in flight at each report.
    """

    limits: HiddenLimits
    settings: PaceSettings
    latency: Latency
    sessions: int = 1
    wait_seconds: float | None = None
    names_limit: bool = True
    overhead: float = 0.01
    state: PaceState = field(default_factory=PaceState)
    history: list[tuple[float, int, int]] = field(default_factory=list)
    _now: float = START
    _events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _schedules: list[SendSchedule] = field(default_factory=list)
    _planned: dict[str, float] = field(default_factory=dict)
    _count: int = 0
    _next_request_at: float = 0.0
    _next_token_at: float = 0.0
    _random: random.Random = field(default_factory=lambda: random.Random(1))

    def run(self, seconds: float) -> None:
        """Let `seconds` of virtual time pass."""
        self._schedules = [SendSchedule(f"session {number}", self.settings) for number in range(self.sessions)]
        for schedule in self._schedules:
            self._report_regularly(schedule)
        end = self._now + seconds
        while self._events and self._events[0][0] <= end:
            self._now, _, action = heapq.heappop(self._events)
            action()
        self._now = end

    def _plan(self, delay: float, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (self._now + delay, self._count, action))

    def _report_regularly(self, schedule: SendSchedule) -> None:
        self._report(schedule)
        self._plan(REPORT_SECONDS, lambda: self._report_regularly(schedule))

    def _report(self, schedule: SendSchedule) -> None:
        self.state = adjust(self.state, schedule.take_report(self._now), self.settings, now=self._now)
        limit = compute_limit(self.state, self.settings)
        held = max(0.0, self.state.held_until - self._now)
        schedule.set_pace(
            SessionPace(
                compute_share(self.state, self.settings, schedule.session),
                held,
                *compute_intervals(self.state, self.settings),
                pauses_after_rejection=not are_rejections_steady(self.state, self._now),
            ),
            self._now,
            self.settings,
        )
        self.history.append((self._now - START, limit, self.limits.running))
        self._send(schedule)

    def _send(self, schedule: SendSchedule) -> None:
        while True:
            if missing := schedule.count_missing_times(10_000):
                schedule.add_send_times(self._reserve(schedule, missing), self._now, self.settings)
            delay = schedule.find_delay(self._now)
            has_slot = sum(item.in_flight for item in self._schedules) < compute_limit(self.state, self.settings)
            if delay is None or not has_slot:
                return
            if delay > 0:
                self._send_later(schedule, delay)
                return
            self._answer(schedule, schedule.start(self._now))

    def _send_later(self, schedule: SendSchedule, delay: float) -> None:
        planned = self._planned.get(schedule.session, 0.0)
        if not self._now < planned <= self._now + delay + 1e-6:
            self._planned[schedule.session] = self._now + delay + 1e-6
            self._plan(delay + 1e-6, lambda: self._send(schedule))

    def _reserve(self, schedule: SendSchedule, count: int) -> list[float]:
        assert schedule.pace is not None
        requests, tokens = schedule.pace.request_seconds, schedule.pace.token_seconds
        first_request, first_token = max(self._next_request_at, self._now), max(self._next_token_at, self._now)
        self._next_request_at, self._next_token_at = first_request + count * requests, first_token + count * tokens
        return [max(first_request + place * requests, first_token + place * tokens) for place in range(count)]

    def _answer(self, schedule: SendSchedule, sent: PacedRequest) -> None:
        if not self.limits.enter(self._now):
            result = RequestResult(
                "model", is_rejection=True, is_limit=self.names_limit, wait_seconds=self.wait_seconds
            )
            self._plan(0.02, lambda: self._finish(schedule, sent, result))
            return
        seconds = self.latency(self._random, self.limits.running)
        self._plan(seconds, self.limits.leave)
        self._plan(seconds + 0.005, lambda: self._finish(schedule, sent, RequestResult("model", tokens=100)))

    def _finish(self, schedule: SendSchedule, sent: PacedRequest, result: RequestResult) -> None:
        if schedule.finish(sent, result, self._now):
            self._report(schedule)
        self._plan(self.overhead, lambda: self._send(schedule))
