"""Import of a bundle or of a log of Inspect AI as a run that is marked as imported."""

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
    """Import a run. After an error nothing of the file is stored.

    Args:
        file: open binary file; it is read from its start.
        name: name of the file. A file whose name ends in .eval or .json is read as a log of Inspect AI, any other as a
            bundle.
        owner: owner of the new run; None if there is no sign-in.
        progress: called after each batch of trials.
        member_bytes: maximum unpacked bytes of one member of an archive.

    Raises:
        RunImportError: the file cannot be imported.
    """
    importer, limits = (
        (import_log, LOG_LIMITS) if name.lower().endswith(LOG_SUFFIXES) else (import_bundle, DEFAULT_LIMITS)
    )
    return importer(file, name, owner=owner, limits=replace(limits, member_bytes=member_bytes), progress=progress)
