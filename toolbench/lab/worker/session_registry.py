"""Which providers this worker process claims for: one shift per provider at a time, however often it is woken."""

import threading
from collections.abc import Callable, Collection, Iterable

from django.conf import settings

from toolbench.lab.worker.claims import has_queued_trials
from toolbench.lab.worker.notify import notify_workers
from toolbench.lab.worker.session import SessionOptions, run_session


class SessionRegistry:
    """Providers that are served now, shared by the threads of a process.

    Args:
        check_runs, sweep: handed to every shift; see `SessionOptions`.
    """

    def __init__(self, *, check_runs: Callable[[Collection[int]], Iterable[int]], sweep: Callable[[], object]) -> None:
        self._check_runs = check_runs
        self._sweep = sweep
        self._lock = threading.Lock()
        self._claiming: dict[int, object] = {}
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Shifts claim no more, and queue again what they cannot end within seconds."""
        self._stopping.set()

    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def run_session(self, provider_id: int) -> int:
        """Works a shift, unless one for this provider claims already; returns how many trials were ended."""
        over = object()
        with self._lock:
            if provider_id in self._claiming or self._stopping.is_set():
                return 0
            self._claiming[provider_id] = over
        terms = SessionOptions(
            settings.SESSION_SECONDS,
            check_runs=self._check_runs,
            sweep=self._sweep,
            stopping=self._stopping.is_set,
            on_claiming_ended=lambda: self._end_claiming(provider_id, over),
        )
        try:
            return run_session(provider_id, terms)
        finally:
            self._release(provider_id, over)

    def _end_claiming(self, provider_id: int, over: object) -> None:
        """The shift claims no more. Work whose wake-up still found it claiming is woken for again."""
        self._release(provider_id, over)
        if not self._stopping.is_set() and has_queued_trials(provider_id):
            notify_workers([provider_id])

    def _release(self, provider_id: int, over: object) -> None:
        with self._lock:
            if self._claiming.get(provider_id) is over:
                del self._claiming[provider_id]
