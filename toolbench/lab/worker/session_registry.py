"""Registry of the providers for which this process claims trials, in at most one session for each."""

import threading

from django.conf import settings

from toolbench.lab.worker.claims import has_queued_trials
from toolbench.lab.worker.queue import notify_workers
from toolbench.lab.worker.session import CheckRuns, SessionOptions, Sweep, run_session


class SessionRegistry:
    """Providers for which a session of this process claims trials. Thread-safe.

    Args:
        check_runs: passed to every session; see `SessionOptions`.
        sweep: passed to every session; see `SessionOptions`.
    """

    def __init__(self, *, check_runs: CheckRuns, sweep: Sweep) -> None:
        self._check_runs = check_runs
        self._sweep = sweep
        self._lock = threading.Lock()
        self._token_by_provider: dict[int, object] = {}
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Make the sessions end claiming and requeue trials that do not end within 3 s (STOP_TIMEOUT_SECONDS)."""
        self._stopping.set()

    def is_stopping(self) -> bool:
        """Return whether `stop` was called."""
        return self._stopping.is_set()

    def run_session(self, provider_id: int) -> int:
        """Run a session for a provider.

        Returns:
            The number of trials that ended; 0 if no session was run, because one already claims for the provider or
            `stop` was called.
        """
        session_token = object()
        with self._lock:
            if provider_id in self._token_by_provider or self._stopping.is_set():
                return 0
            self._token_by_provider[provider_id] = session_token
        options = SessionOptions(
            settings.SESSION_SECONDS,
            check_runs=self._check_runs,
            sweep=self._sweep,
            is_stopping=self._stopping.is_set,
            on_claiming_ended=lambda: self._end_claiming(provider_id, session_token),
        )
        try:
            return run_session(provider_id, options)
        finally:
            self._release(provider_id, session_token)

    def _end_claiming(self, provider_id: int, session_token: object) -> None:
        """Release the provider; unless the process is stopping, notify the workers if trials are queued.

        The reason is that a notification which arrived during this session was dropped.
        """
        self._release(provider_id, session_token)
        if not self._stopping.is_set() and has_queued_trials(provider_id):
            notify_workers([provider_id])

    def _release(self, provider_id: int, session_token: object) -> None:
        with self._lock:
            if self._token_by_provider.get(provider_id) is session_token:
                del self._token_by_provider[provider_id]
