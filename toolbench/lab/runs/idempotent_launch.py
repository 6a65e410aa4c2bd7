"""Launch of a run with an idempotency key: the same request with the same key returns the same run."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth.models import User
from django.db import transaction

from toolbench.engine.types import JsonObject
from toolbench.lab.models import LaunchKey, Run
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.runs.launch import launch

MAX_KEY_CHARACTERS = 200


class LaunchKeyError(Exception):
    """Raised if a key cannot be used; the message says why and what to do."""


def launch_once(
    request: RunRequest, *, owner: User, key: str, body: JsonObject, confirmed_requests: int = 0
) -> tuple[Run, bool]:
    """Launch a run, or return the run that the user launched with this key before.

    If two requests with the same key arrive at the same time, the second one waits for the first. If the launch is
    refused, the key stays unused.

    Args:
        request: the run to launch.
        owner: the user who launches it.
        key: the idempotency key, at most MAX_KEY_CHARACTERS; "" for a launch without a key.
        body: the request body; a later request with the same key must have an equal one.
        confirmed_requests: the confirmed number of paid requests.

    Returns:
        The run, and whether it is new.

    Raises:
        LaunchKeyError: the key belongs to another request, or its run was deleted.
        LaunchError: as in `launch`.
        PaidRequestsUnconfirmedError: as in `launch`.
    """
    with use_launch_key(owner, key, body) as launch_key:
        if launch_key.run is not None:
            return launch_key.run, False
        run = launch_key.run = launch(request, owner=owner, confirmed_requests=confirmed_requests)
        return run, True


@contextmanager
def use_launch_key(owner: User, key: str, body: JsonObject) -> Iterator[LaunchKey]:
    """Provide the row of a key to the `with` block, which runs in a transaction.

    A simultaneous request with the same key waits for the end of the transaction. Without a key, the row is a new one
    that is not saved, and there is no transaction.

    If the row has a run or a case, the key was used before. Otherwise set its `run` to the run that you launch, and its
    `case` to the test case that you save. If you leave both None, or an exception ends the block, the key stays unused.

    Args:
        owner: the user who sends the request.
        key: the idempotency key, at most MAX_KEY_CHARACTERS; "" for an empty row, which is not saved.
        body: the request body; a later request with the same key must have an equal one.

    Raises:
        LaunchKeyError: the key belongs to another request, or its run or case was deleted.
    """
    if not key:
        yield LaunchKey()
        return
    body_hash = _hash_body(body)
    with transaction.atomic():
        row, is_new = LaunchKey.objects.get_or_create(user=owner, key=key, defaults={"body_hash": body_hash})
        if not is_new:
            _check_key(row, body_hash)
        yield row
        if row.run is None and row.case is None:
            row.delete()
        else:
            row.save(update_fields=["run", "case"])


def _hash_body(body: JsonObject) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _check_key(row: LaunchKey, body_hash: str) -> None:
    if row.body_hash != body_hash:
        raise LaunchKeyError(f"The key {row.key} was used for another request. Send a new key; nothing was launched.")
    if any(result is not None and result.deleted_at is not None for result in (row.run, row.case)):
        raise LaunchKeyError(
            f"The run or test case of the key {row.key} was deleted. Send a new key; nothing was launched."
        )
