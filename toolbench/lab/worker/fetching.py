"""Where a shift fetches its trials: claims them and reads what is needed to run them, in the database thread."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolbench.lab.credentials.keys import KeyUnavailable
from toolbench.lab.models import Provider
from toolbench.lab.worker.claims import ClaimedTrial, claim
from toolbench.lab.worker.database_thread import is_away
from toolbench.lab.worker.heartbeat import process_name
from toolbench.lab.worker.refused_parameters import with_refused
from toolbench.lab.worker.slots import Free
from toolbench.lab.worker.trial_plan import FrozenConfig, Reach, frozen_configs, reach, with_addresses

logger = logging.getLogger(__name__)

AT_ONCE = 64
REACH_SECONDS = 1.0  # for so long a provider's own address and key are taken as read


@dataclass(frozen=True, slots=True)
class Handed:
    """Claimed trials with their configurations by id, and how their provider is reached; `more` when there may be
    more to claim at once. A configuration that cannot be read is missing."""

    trials: tuple[ClaimedTrial, ...]
    configs: Mapping[int, FrozenConfig]
    reach: Reach
    more: bool


def _read_configs(ids: Sequence[int]) -> dict[int, FrozenConfig]:
    """Read frozen configurations. One that cannot be read is logged and missing in the answer."""
    try:
        return frozen_configs(ids)
    except Exception as error:
        if is_away(error):
            raise
        if len(ids) == 1:
            logger.exception("Configuration %s cannot be read: its trials end as internal errors", *ids)
            return {}
        return {pk: config for one in ids for pk, config in _read_configs([one]).items()}


class Counter:
    """Not for several threads at once."""

    def __init__(self, provider_id: int) -> None:
        self._provider_id = provider_id
        self._worker = process_name("worker")
        self._configs: dict[int, FrozenConfig] = {}
        self._reach: Reach | None = None
        self._read_at = 0.0

    def hand_out(self, free: Free) -> Handed | None:
        """None when the provider is gone, or this worker has no usable key: then the provider's row says why."""
        to = self._reach_now()
        if to is None:
            return None
        trials = claim(self._provider_id, want=AT_ONCE, worker=self._worker, free=free)
        if trials:
            to = with_addresses(to)  # as they were after the claim, which asked whether they are there
        unknown = {trial.config_id for trial in trials} - self._configs.keys()
        if unknown:
            self._configs |= _read_configs(sorted(unknown))
        trials = with_refused(trials, self._provider_id, self._configs)
        return Handed(trials, self._configs, to, more=len(trials) == AT_ONCE)

    def _reach_now(self) -> Reach | None:
        if self._reach is None or time.monotonic() - self._read_at > REACH_SECONDS:
            self._reach, self._read_at = self._read(), time.monotonic()
        return self._reach

    def _read(self) -> Reach | None:
        provider = Provider.objects.filter(pk=self._provider_id).first()
        if provider is None:
            return None
        trouble, to = "", None
        try:
            to = reach(provider)
        except KeyUnavailable as error:
            trouble = str(error)[:200]
        if trouble != provider.paused_reason:
            Provider.objects.filter(pk=provider.pk).update(paused_reason=trouble)
        return to
