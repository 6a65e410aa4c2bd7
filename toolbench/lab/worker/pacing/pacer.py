"""Pacer of a worker session, in which requests wait until the rate control of the provider allows them."""

import asyncio
import time
from collections import deque
from contextlib import suppress
from uuid import uuid4

from toolbench.lab.worker.database_thread import UNAVAILABLE_ERRORS, DatabaseThread
from toolbench.lab.worker.pacing.send_schedule import PacedRequest, RequestResult, SendSchedule, SessionPace
from toolbench.lab.worker.pacing.shared_state import reserve_send_times, share_report
from toolbench.lab.worker.pacing.state import PaceSettings
from toolbench.providers.driver.step_records import ExchangeStep
from toolbench.providers.http.rate_limit_headers import parse_rate_limits
from toolbench.providers.http.retry_delay import parse_retry_after

REPORT_SECONDS = 0.5
# Longest time for which Retry-After pauses all requests of the session. A trial waits at most 60 s for its own retry
# (`retry_delay`).
MAX_PAUSE_SECONDS = 3600.0
OVERLOAD_STATUSES = (429, 503, 529)

_SentFuture = asyncio.Future[PacedRequest]


class Pacer:
    """Queue of the requests of one worker session, in the order in which they arrive.

    If the provider has a fixed concurrency limit and no limit of requests or tokens per minute, no request waits and no
    statement is executed.
    """

    def __init__(self, provider_id: int, database: DatabaseThread) -> None:
        self._provider_id = provider_id
        self._database = database
        self._schedule = SendSchedule(uuid4().hex[:12])
        self._waiting: deque[_SentFuture] = deque()
        self._has_changed = asyncio.Event()
        self._is_report_due = asyncio.Event()

    @property
    def is_active(self) -> bool:
        """Whether requests have to wait for the rate control."""
        return self._schedule.settings.is_active

    def set_settings(self, settings: PaceSettings) -> None:
        """Use these settings of the provider from now on."""
        if settings != self._schedule.settings:
            self._schedule.set_settings(settings)
            self._is_report_due.set()
            self._has_changed.set()

    async def start_request(self) -> PacedRequest:
        """Wait until a request may be sent. Pass the result to `finish_request`."""
        future: _SentFuture = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._has_changed.set()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.finish_request(future.result(), None)
            raise

    def finish_request(self, sent: PacedRequest, result: RequestResult | None) -> None:
        """Count a request that ended.

        Args:
            sent: the request, as `start_request` returned it.
            result: what its answer showed; None if it was not sent or got no answer.
        """
        if self._schedule.finish(sent, result, time.monotonic()):
            self._is_report_due.set()
        self._has_changed.set()

    def read_result(self, step: ExchangeStep, model: str) -> RequestResult | None:
        """Return what an exchange shows about the load of the provider; None if it has no response.

        A limit in the response headers asks for a pause if less of it remains than the requests in flight are expected
        to need. Each is expected to need as many tokens as this exchange.
        """
        if step.status is None:
            return None
        headers = step.response_headers
        is_rejection = step.status in OVERLOAD_STATUSES
        usage = step.turn_read.usage if step.turn_read else None
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0) if usage else 0
        pauses = [
            limit.reset_seconds
            for limit in parse_rate_limits(headers)
            if limit.remaining < (max(1, tokens) if limit.counts_tokens else 1) * self._schedule.in_flight
        ]
        pause_seconds = max(pauses, default=0.0)
        retry_after = parse_retry_after(headers, MAX_PAUSE_SECONDS) if is_rejection else None
        return RequestResult(
            model=model if step.turn_read else "",
            tokens=tokens,
            is_rejection=is_rejection,
            is_limit=step.status == 429,
            wait_seconds=retry_after or pause_seconds or None,
            pause_seconds=pause_seconds,
        )

    async def run(self) -> None:
        """Release waiting requests as the rate control allows, until the task is cancelled."""
        while True:
            self._has_changed.clear()
            delay = await self._release_waiting()
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._has_changed.wait()

    async def _release_waiting(self) -> float | None:
        """Release all requests that may be sent now.

        Returns:
            The seconds until the next one may be sent; None if no request waits, or if the next one has to wait for a
            change of the schedule.
        """
        while self._waiting:
            if self._waiting[0].done():  # cancelled
                self._waiting.popleft()
                continue
            if not self._schedule.settings.is_active:
                self._start_first()
                continue
            await self._reserve_send_times()
            delay = self._schedule.find_delay(time.monotonic())
            if delay != 0:
                return delay
            self._start_first()
        return None

    def _start_first(self) -> None:
        future = self._waiting.popleft()
        if not future.done():
            future.set_result(self._schedule.start(time.monotonic()))

    async def _reserve_send_times(self) -> None:
        pace, settings = self._schedule.pace, self._schedule.settings
        missing = self._schedule.count_missing_times(len(self._waiting))
        if pace is None or not missing:
            return
        with suppress(*UNAVAILABLE_ERRORS):
            delays = await self._database.run(reserve_send_times, self._provider_id, missing, pace)
            now = time.monotonic()
            self._schedule.add_send_times([now + delay for delay in delays], now, settings)

    async def report(self) -> None:
        """Share reports with the other sessions and follow the new limits, until the task is cancelled.

        A report is due REPORT_SECONDS after the last one, or at once if the limits may have to change. If no request
        waits, is in flight or was answered, no report is shared, unless the session has no limits yet.
        """
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(REPORT_SECONDS):
                    await self._is_report_due.wait()
            self._is_report_due.clear()
            schedule = self._schedule
            if schedule.settings.is_active and (self._waiting or schedule.has_activity() or schedule.pace is None):
                with suppress(*UNAVAILABLE_ERRORS):
                    await self._share_report()

    async def _share_report(self) -> None:
        schedule, settings = self._schedule, self._schedule.settings
        report = schedule.take_report(time.monotonic())
        pace = await self._database.run(share_report, self._provider_id, report, settings)
        # The trials of a deleted provider continue without a limit per minute.
        schedule.set_pace(pace or SessionPace(settings.max_concurrency), time.monotonic(), settings)
        self._has_changed.set()
