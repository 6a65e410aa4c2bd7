"""A file from elsewhere becomes a run labelled as imported, whatever of the known kinds it is."""

from typing import IO

from django.contrib.auth.models import AbstractBaseUser

from toolbench.lab.bundles.reading import import_bundle
from toolbench.lab.models import Run


def import_run(file: IO[bytes], name: str, *, owner: AbstractBaseUser | None) -> Run:
    """Raises ImportRefused; then nothing is kept."""
    return import_bundle(file, name, owner=owner)
