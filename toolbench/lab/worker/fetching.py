"""Trial fetcher of a worker session, which claims trials and reads their configurations and provider."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolbench.lab.credentials.keys import KeyUnavailableError
from toolbench.lab.metrics.provider_budget import get_provider_budget
from toolbench.lab.models import Provider
from toolbench.lab.worker.claims import ClaimedTrial, claim
from toolbench.lab.worker.database_thread import is_unavailable
from toolbench.lab.worker.health import build_process_name
from toolbench.lab.worker.pacing.shared_state import read_settings
from toolbench.lab.worker.pacing.state import PaceSettings
from toolbench.lab.worker.refused_parameters import add_refused
from toolbench.lab.worker.slots import SlotHints
from toolbench.lab.worker.trial_plan import (
    FrozenConfig,
    ProviderAccess,
    load_frozen_configs,
    load_provider_access,
    refresh_addresses,
)

logger = logging.getLogger(__name__)

MAX_CLAIMED_TRIALS = 128
ACCESS_CACHE_SECONDS = 1.0  # time after which address, key and budget of the provider are read again
NO_LIMIT = 2**31  # stands for any number of trials that the budget allows


@dataclass(frozen=True, slots=True)
class ClaimedBatch:
    """Claimed trials of one provider with their settings.

    Attributes:
        configs: configurations by id, also those of earlier batches; a configuration that cannot be read is missing.
        has_more: whether the batch has MAX_CLAIMED_TRIALS, so that more trials may be queued.
    """

    trials: tuple[ClaimedTrial, ...]
    configs: Mapping[int, FrozenConfig]
    access: ProviderAccess
    has_more: bool


def _read_configs(ids: Sequence[int]) -> dict[int, FrozenConfig]:
    """Read frozen configurations by id. One that cannot be read is logged and missing in the result."""
    try:
        return load_frozen_configs(ids)
    except Exception as error:
        if is_unavailable(error):
            raise
        if len(ids) == 1:
            logger.exception("Configuration %s cannot be read: its trials end as internal errors", *ids)
            return {}
        return {pk: config for config_id in ids for pk, config in _read_configs([config_id]).items()}


class TrialFetcher:
    """Fetcher of trials of one provider. Not thread-safe."""

    def __init__(self, provider_id: int) -> None:
        self._provider_id = provider_id
        self._worker_name = build_process_name("worker")
        self._configs: dict[int, FrozenConfig] = {}
        self._access: ProviderAccess | None = None
        self._pace: PaceSettings | None = None
        self._affordable_trials = NO_LIMIT  # trials that the provider's budget for the month allows to start
        self._read_at = 0.0

    def fetch(self, hints: SlotHints) -> ClaimedBatch | None:
        """Claim trials and read their configurations.

        Returns:
            The batch, which may be empty. None if the provider was deleted, if its budget for the month is spent, or if
            its key or another of its secrets cannot be read. In the last case, `Provider.paused_reason` has the error.
        """
        access = self.get_access()
        if access is None:
            return None
        limit = min(MAX_CLAIMED_TRIALS, self._affordable_trials)
        trials = claim(self._provider_id, limit=limit, worker=self._worker_name, hints=hints) if limit else ()
        self._affordable_trials -= len(trials)
        if trials:
            access = refresh_addresses(access)  # a local server may have been registered just before the claim
        unread_ids = {trial.config_id for trial in trials} - self._configs.keys()
        if unread_ids:
            self._configs |= _read_configs(sorted(unread_ids))
        trials = add_refused(trials, self._provider_id, self._configs)
        return ClaimedBatch(trials, self._configs, access, has_more=len(trials) == MAX_CLAIMED_TRIALS)

    def get_access(self) -> ProviderAccess | None:
        """Return the access to the provider, read at most ACCESS_CACHE_SECONDS ago.

        Returns:
            The access; None in the cases in which `fetch` returns None.
        """
        is_old = time.monotonic() - self._read_at > ACCESS_CACHE_SECONDS
        if self._access is None or is_old or not self._affordable_trials:
            self._access, self._read_at = self._read_access(), time.monotonic()
        return self._access

    def get_pace(self) -> PaceSettings | None:
        """Return the settings of the rate control, which are read together with the access.

        Returns:
            The settings, also while `get_access` returns None; None if the provider was deleted.
        """
        self.get_access()
        return self._pace

    def _read_access(self) -> ProviderAccess | None:
        """Read the provider and its budget; store in `paused_reason` why its secrets cannot be read, "" if they can."""
        provider = Provider.objects.filter(pk=self._provider_id).first()
        self._pace = read_settings(provider) if provider else None
        if provider is None:
            return None
        paused_reason, access = "", None
        try:
            access = load_provider_access(provider)
        except KeyUnavailableError as error:
            paused_reason = str(error)[:200]
        if paused_reason != provider.paused_reason:
            Provider.objects.filter(pk=provider.pk).update(paused_reason=paused_reason)
        budget = get_provider_budget(provider)
        affordable = budget.count_affordable() if budget else None
        self._affordable_trials = NO_LIMIT if affordable is None else affordable
        return None if budget and budget.is_reached else access
