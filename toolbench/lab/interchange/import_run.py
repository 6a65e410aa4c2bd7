"""A file from elsewhere becomes a run labelled as imported, whatever of the known kinds it is."""

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
    """A name that ends in .eval or .json is a log of Inspect AI, anything else a bundle. Raises RunImportError; then
    nothing is kept.

    Args:
        member_bytes: what one member of an archive may unpack to.
    """
    wanted, caps = (import_log, LOG_LIMITS) if name.lower().endswith(LOG_SUFFIXES) else (import_bundle, DEFAULT_LIMITS)
    return wanted(file, name, owner=owner, caps=replace(caps, member_bytes=member_bytes), progress=progress)
