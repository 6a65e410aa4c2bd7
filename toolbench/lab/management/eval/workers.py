"""Worker sessions in the process of `manage.py eval`, in one thread for each provider of its run.

Worker processes may run trials of the run at the same time.
"""

import threading
import time
from dataclasses import dataclass, field
from typing import Self

from django.conf import settings
from django.db import connection

from toolbench.lab.credentials.keys import KeyUnavailableError, read_endpoint_key
from toolbench.lab.endpoints.probe_job import list_queued_probes, run_probe
from toolbench.lab.maintenance import check_runs, sweep
from toolbench.lab.metrics.cells import recompute_all_stale
from toolbench.lab.models import Provider, Run, Trial
from toolbench.lab.planning.auto_method import decide_waiting_methods
from toolbench.lab.runs.sequential_stopping import analyse_undecided_runs
from toolbench.lab.worker.completion import finish_runs
from toolbench.lab.worker.health import remove_heartbeat
from toolbench.lab.worker.job_failures import SESSION_JOB, count_failure
from toolbench.lab.worker.session import SessionOptions, run_session


@dataclass(slots=True)
class EvalSessions:
    """Worker sessions for the providers of one run.

    Attributes:
        failure: the internal error that ended a session, after which no other session is started; None without one.
    """

    run_id: int
    failure: Exception | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)
    _threads: dict[int, threading.Thread] = field(default_factory=dict)
    _next_sweep_at: float = 0.0  # monotonic time

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        """Wait for the threads, recompute the run's cells, finish runs and delete the heartbeat of this process.

        If the block raised an exception, the sessions are stopped first.
        """
        if kind is not None:
            self.stop()
        for thread in self._threads.values():
            thread.join()
        recompute_all_stale(self.run_id)
        finish_runs()
        remove_heartbeat("worker")

    def start_sessions(self) -> bool:
        """Start a session for every provider that has queued trials of this run and no session of this process.

        A provider whose key this process cannot read gets no session. After `stop` or a failure, none is started. If no
        session runs although trials of the run are marked as running, this call sweeps, so that trials of a killed
        process are queued again.

        Returns:
            Whether a session of this process is running, or a trial of the run is running in any process. After `stop`,
            only sessions count.
        """
        self._threads = {pk: thread for pk, thread in self._threads.items() if thread.is_alive()}
        is_stopped = self._stopping.is_set() or self.failure is not None
        if not is_stopped:
            analyse_undecided_runs()
        provider_ids = set() if is_stopped else self._find_waiting_provider_ids()
        for provider_id in provider_ids - self._threads.keys():
            thread = threading.Thread(
                target=self._run_session, args=[provider_id], name=f"worker session of {provider_id}"
            )
            self._threads[provider_id] = thread
            thread.start()
        if self._threads:
            return True
        if not self._has_running_trials():
            return False
        self._sweep()
        return True

    def stop(self) -> None:
        """Stop all sessions. Trials in flight that do not end within STOP_TIMEOUT_SECONDS (session.py) are requeued."""
        self._stopping.set()

    def _find_waiting_provider_ids(self) -> set[int]:
        queued = Trial.objects.filter(run_id=self.run_id, run__state=Run.State.RUNNING, state=Trial.State.QUEUED)
        providers = Provider.objects.filter(pk__in=queued.values("provider_id"))
        return {provider.pk for provider in providers if _has_key(provider)}

    def _has_running_trials(self) -> bool:
        running = Trial.objects.filter(run_id=self.run_id, state=Trial.State.RUNNING)
        return not self._stopping.is_set() and running.exists()

    def _sweep(self) -> None:
        """Sweep if `settings.SWEEP_SECONDS` have passed since the last sweep of this method."""
        if time.monotonic() >= self._next_sweep_at:
            sweep(with_counts=False)
            self._next_sweep_at = time.monotonic() + settings.SWEEP_SECONDS

    def _run_session(self, provider_id: int) -> None:
        """Run the queued probes of a provider and then a worker session; store an exception in `failure`."""
        try:
            for probe_id in list_queued_probes(provider_id):
                run_probe(probe_id, self._stopping.is_set, on_finished=decide_waiting_methods)
            options = SessionOptions(
                settings.SESSION_SECONDS, check_runs=check_runs, sweep=sweep, is_stopping=self._stopping.is_set
            )
            run_session(provider_id, options)
        except Exception as error:
            count_failure(SESSION_JOB, error, provider_id)
            self.failure = error
        finally:
            connection.close()


def _has_key(provider: Provider) -> bool:
    """Return whether this process can read the provider's key. Other workers may be able to."""
    try:
        read_endpoint_key(provider)
    except KeyUnavailableError:
        return False
    return True
