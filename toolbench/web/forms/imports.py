"""A file that somebody sends to be imported."""

from typing import Any

from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile

from toolbench.lab.bundles.opening import ImportRefused
from toolbench.lab.imports.importing import import_run
from toolbench.lab.models import Run

MOST_BYTES = 64 << 20


def take(file: "UploadedFile[Any] | None", owner: User | None) -> Run:
    """The imported run. Raises ImportRefused with what happened and what to do."""
    if file is None or file.size is None:
        raise ImportRefused("No file arrived: choose one of at most 64 MB. Nothing was imported.")
    if file.size > MOST_BYTES:
        raise ImportRefused(
            f"The file has {file.size:,} bytes; {MOST_BYTES:,} are taken here. Nothing was imported: use "
            "`manage.py import_bundle FILE` on the machine itself."
        )
    return import_run(file, file.name or "", owner=owner)
