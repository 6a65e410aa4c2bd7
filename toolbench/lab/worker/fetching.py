"""Fetch trials for a worker session: claim them and read what their execution needs, in the database thread."""

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

MAX_CLAIMED_TRIALS = 64
ACCESS_CACHE_SECONDS = 1.0  # for so long a provider's own address, key and budget are taken as read
NO_LIMIT = 2**31


@dataclass(frozen=True, slots=True)
class ClaimedBatch:
    """Claimed trials, their configurations by id, and the access to their provider.

    `has_more` is true if more trials may be claimed at once. A configuration that cannot be read is missing.
    """

    trials: tuple[ClaimedTrial, ...]
    configs: Mapping[int, FrozenConfig]
    access: ProviderAccess
    has_more: bool


def _read_configs(ids: Sequence[int]) -> dict[int, FrozenConfig]:
    """Read frozen configurations. A configuration that cannot be read is logged and missing in the result."""
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
    """Fetches the trials of one provider. Use it in one thread only."""

    def __init__(self, provider_id: int) -> None:
        self._provider_id = provider_id
        self._worker = build_process_name("worker")
        self._configs: dict[int, FrozenConfig] = {}
        self._access: ProviderAccess | None = None
        self._affordable = NO_LIMIT
        self._read_at = 0.0

    def fetch(self, hints: SlotHints) -> ClaimedBatch | None:
        """Claim trials and read their configurations.

        Returns:
            None when the provider was deleted or has spent its budget for the month, or when this worker has no usable
            key: the provider's row then says why.
        """
        access = self._get_access()
        if access is None:
            return None
        limit = min(MAX_CLAIMED_TRIALS, self._affordable)
        trials = claim(self._provider_id, limit=limit, worker=self._worker, hints=hints) if limit else ()
        self._affordable -= len(trials)
        if trials:
            access = refresh_addresses(access)  # as they were after the claim, which asked whether they are there
        unknown = {trial.config_id for trial in trials} - self._configs.keys()
        if unknown:
            self._configs |= _read_configs(sorted(unknown))
        trials = add_refused(trials, self._provider_id, self._configs)
        return ClaimedBatch(trials, self._configs, access, has_more=len(trials) == MAX_CLAIMED_TRIALS)

    def _get_access(self) -> ProviderAccess | None:
        is_old = time.monotonic() - self._read_at > ACCESS_CACHE_SECONDS
        if self._access is None or is_old or not self._affordable:
            self._access, self._read_at = self._read_access(), time.monotonic()
        return self._access

    def _read_access(self) -> ProviderAccess | None:
        provider = Provider.objects.filter(pk=self._provider_id).first()
        if provider is None:
            return None
        trouble, access = "", None
        try:
            access = load_provider_access(provider)
        except KeyUnavailableError as error:
            trouble = str(error)[:200]
        if trouble != provider.paused_reason:
            Provider.objects.filter(pk=provider.pk).update(paused_reason=trouble)
        budget = get_provider_budget(provider)
        affordable = budget.count_affordable() if budget else None
        self._affordable = NO_LIMIT if affordable is None else affordable
        return None if budget and budget.is_reached else access
