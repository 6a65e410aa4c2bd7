"""Working a run in this process: one shift per provider, each in a thread of its own, beside any worker there is."""

import threading
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
from toolbench.lab.worker.job_failures import SESSION_JOB, count_failure
from toolbench.lab.worker.session import SessionOptions, run_session


@dataclass(slots=True)
class EvalSessions:
    """`failure` is what ended a shift by our own fault; then no other is started."""

    run_id: int
    failure: Exception | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)
    _threads: dict[int, threading.Thread] = field(default_factory=dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        """Waits for the threads, in a hurry after an error, then brings the run's state and cells up to date."""
        if kind is not None:
            self.stop()
        for thread in self._threads.values():
            thread.join()
        recompute_all_stale(self.run_id)
        finish_runs()

    def start_sessions(self) -> bool:
        """Starts a shift for every provider that has work of this run and none here. False when nothing of the run is
        under way any more, here or elsewhere."""
        self._threads = {pk: thread for pk, thread in self._threads.items() if thread.is_alive()}
        stopped = self._stopping.is_set() or self.failure
        if not stopped:
            analyse_undecided_runs()
        waiting = set() if stopped else self._find_waiting_providers()
        for provider_id in waiting - self._threads.keys():
            thread = threading.Thread(target=self._run_session, args=[provider_id], name=f"shift of {provider_id}")
            self._threads[provider_id] = thread
            thread.start()
        return bool(self._threads) or self._has_trials(Trial.State.RUNNING)

    def stop(self) -> None:
        """Trials in flight are given up within seconds and queued again."""
        self._stopping.set()

    def _find_waiting_providers(self) -> set[int]:
        queued = Trial.objects.filter(run_id=self.run_id, run__state=Run.State.RUNNING, state=Trial.State.QUEUED)
        providers = Provider.objects.filter(pk__in=queued.values("provider_id"))
        return {provider.pk for provider in providers if _has_key(provider)}

    def _has_trials(self, state: Trial.State) -> bool:
        return not self._stopping.is_set() and Trial.objects.filter(run_id=self.run_id, state=state).exists()

    def _run_session(self, provider_id: int) -> None:
        try:
            for probe_id in list_queued_probes(provider_id):
                run_probe(probe_id, self._stopping.is_set, on_finished=decide_waiting_methods)
            terms = SessionOptions(
                settings.SESSION_SECONDS, check_runs=check_runs, sweep=sweep, stopping=self._stopping.is_set
            )
            run_session(provider_id, terms)
        except Exception as error:
            count_failure(SESSION_JOB, error, provider_id)
            self.failure = error
        finally:
            connection.close()


def _has_key(provider: Provider) -> bool:
    """In this process; what other workers have does not matter here."""
    try:
        read_endpoint_key(provider)
    except KeyUnavailableError:
        return False
    return True
