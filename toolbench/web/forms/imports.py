"""A file that somebody sends to be imported."""

from typing import Any

from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile

from toolbench.lab.interchange.import_run import import_run
from toolbench.lab.interchange.queue import queue_import
from toolbench.lab.interchange.safe_zip import ImportRefused, unpacked_bytes
from toolbench.lab.models import Replay, Run

MOST_BYTES = 64 << 20
AT_ONCE_BYTES = 256 << 10  # imported while the page is waited for, in less than two seconds
AT_ONCE_UNPACKED = 2 << 20  # the same, of what an archive unpacks to


def take(file: "UploadedFile[Any] | None", owner: User | None) -> Run | Replay:
    """Return the imported run; for a large file the row of the import that a worker will do.

    Raises:
        ImportRefused: says what happened and what to do.
    """
    if file is None or file.size is None:
        raise ImportRefused("No file arrived: choose one of at most 64 MB. Nothing was imported.")
    if file.size > MOST_BYTES:
        raise ImportRefused(
            f"The file has {file.size:,} bytes; {MOST_BYTES:,} are taken here. Nothing was imported: use "
            "`manage.py import_bundle FILE` on the machine itself."
        )
    is_small = file.size <= AT_ONCE_BYTES and unpacked_bytes(file) <= AT_ONCE_UNPACKED
    take_in = import_run if is_small else queue_import
    return take_in(file, file.name or "", owner=owner)
