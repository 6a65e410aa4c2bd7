"""Import of a file of any known kind as a run that is marked as imported."""

from dataclasses import replace
from typing import IO

from django.contrib.auth.models import AbstractBaseUser

from toolbench.lab.interchange.bundle.read import DEFAULT_LIMITS, import_bundle
from toolbench.lab.interchange.create_run import OnProgress, ignore_progress
from toolbench.lab.interchange.inspect_ai.log import LOG_LIMITS, import_log
from toolbench.lab.interchange.safe_zip import MAX_MEMBER_BYTES
from toolbench.lab.models import Run

LOG_SUFFIXES = (".eval", ".json")


def import_run(
    file: IO[bytes],
    name: str,
    *,
    owner: AbstractBaseUser | None,
    progress: OnProgress = ignore_progress,
    member_bytes: int = MAX_MEMBER_BYTES,
) -> Run:
    """Import a run; after an error nothing of the file is stored.

    Args:
        file: the open file.
        name: name of the file. One that ends in .eval or .json is a log of Inspect AI, any other a bundle.
        owner: owner of the new run, or None.
        progress: called after each batch of trials.
        member_bytes: the most bytes that one member of an archive may unpack to.

    Raises:
        RunImportError: the file cannot be imported.
    """
    importer, caps = (
        (import_log, LOG_LIMITS) if name.lower().endswith(LOG_SUFFIXES) else (import_bundle, DEFAULT_LIMITS)
    )
    return importer(file, name, owner=owner, caps=replace(caps, member_bytes=member_bytes), progress=progress)
