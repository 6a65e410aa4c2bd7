"""Launch with an idempotency key: a request that is sent again leads to the same run."""

import hashlib
import json

from django.contrib.auth.models import User
from django.db import transaction

from toolbench.engine.types import JsonObject
from toolbench.lab.models import LaunchKey, Run
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.runs.launch import launch

MAX_KEY_CHARACTERS = 200


class LaunchKeyError(Exception):
    """A key that was used for another request; the text says what to do."""


def launch_once(request: RunRequest, *, owner: User, key: str, body: JsonObject, agreed: int = 0) -> tuple[Run, bool]:
    """Launch a run, or return the run that the person launched with this key before.

    Of two simultaneous requests with one key, the second one waits for the first. A launch that is refused leaves the
    key unused.

    Args:
        request: what to try.
        owner: the person who launches it.
        key: the idempotency key, at most MAX_KEY_CHARACTERS; "" launches in any case.
        body: the request as it was sent: a repeat has to be equal to it.
        agreed: the confirmed number of paid requests.

    Returns:
        The run, and whether it is new.

    Raises:
        LaunchKeyError: the key belongs to another request, or its run was deleted.
        LaunchError, ConfirmationNeededError: as for `launch`.
    """
    if not key:
        return launch(request, owner=owner, agreed=agreed), True
    body_hash = _hash_body(body)
    with transaction.atomic():
        row, made = LaunchKey.objects.get_or_create(user=owner, key=key, defaults={"body_hash": body_hash})
        if not made:
            return _get_run(row, body_hash), False
        row.run = launch(request, owner=owner, agreed=agreed)
        row.save(update_fields=["run"])
        return row.run, True


def _hash_body(body: JsonObject) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _get_run(row: LaunchKey, body_hash: str) -> Run:
    if row.body_hash != body_hash:
        raise LaunchKeyError(f"The key {row.key} was used for another request. Send a new key; nothing was launched.")
    if row.run is None or row.run.deleted_at is not None:
        raise LaunchKeyError(f"The run of the key {row.key} was deleted. Send a new key; nothing was launched.")
    return row.run
