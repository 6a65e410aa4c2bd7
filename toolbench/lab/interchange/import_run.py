"""A file from elsewhere becomes a run labelled as imported, whatever of the known kinds it is."""

from dataclasses import replace
from typing import IO

from django.contrib.auth.models import AbstractBaseUser

from toolbench.lab.interchange.bundle.read import USUAL, import_bundle
from toolbench.lab.interchange.create_run import Progress, unwatched
from toolbench.lab.interchange.inspect_ai.log import LOG_CAPS, import_log
from toolbench.lab.interchange.safe_zip import MOST_MEMBER_BYTES
from toolbench.lab.models import Run

LOGS = (".eval", ".json")


def import_run(
    file: IO[bytes],
    name: str,
    *,
    owner: AbstractBaseUser | None,
    progress: Progress = unwatched,
    member_bytes: int = MOST_MEMBER_BYTES,
) -> Run:
    """A name that ends in .eval or .json is a log of Inspect AI, anything else a bundle. Raises ImportRefused; then
    nothing is kept.

    Args:
        member_bytes: what one member of an archive may unpack to.
    """
    wanted, caps = (import_log, LOG_CAPS) if name.lower().endswith(LOGS) else (import_bundle, USUAL)
    return wanted(file, name, owner=owner, caps=replace(caps, member_bytes=member_bytes), progress=progress)
