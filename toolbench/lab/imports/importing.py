"""A file from elsewhere becomes a run labelled as imported, whatever of the known kinds it is."""

from typing import IO

from django.contrib.auth.models import AbstractBaseUser

from toolbench.lab.bundles.inspect_logs import import_log
from toolbench.lab.bundles.planting import Progress, unwatched
from toolbench.lab.bundles.reading import import_bundle
from toolbench.lab.models import Run

LOGS = (".eval", ".json")


def import_run(file: IO[bytes], name: str, *, owner: AbstractBaseUser | None, progress: Progress = unwatched) -> Run:
    """A name that ends in .eval or .json is a log of Inspect AI, anything else a bundle. Raises ImportRefused; then
    nothing is kept."""
    wanted = import_log if name.lower().endswith(LOGS) else import_bundle
    return wanted(file, name, owner=owner, progress=progress)
