"""Import of an uploaded file."""

from typing import Any

from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile

from toolbench.lab.interchange.import_run import import_run
from toolbench.lab.interchange.queue import queue_import
from toolbench.lab.interchange.safe_zip import RunImportError, count_unpacked_bytes
from toolbench.lab.models import Replay, Run

MAX_FILE_BYTES = 64 << 20
MAX_IMMEDIATE_BYTES = 256 << 10  # imported during the request, in less than two seconds
MAX_IMMEDIATE_UNPACKED_BYTES = 2 << 20  # limit of an archive after unpacking, for an import during the request


def start_import(file: "UploadedFile[Any] | None", owner: User | None) -> Run | Replay:
    """Return the imported run, or for a large file the job that a worker will do.

    Raises:
        RunImportError: nothing was imported; the text gives the reason and the next step.
    """
    if file is None or file.size is None:
        raise RunImportError("No file arrived: choose one of at most 64 MB. Nothing was imported.")
    if file.size > MAX_FILE_BYTES:
        raise RunImportError(
            f"The file has {file.size:,} bytes; {MAX_FILE_BYTES:,} are taken here. Nothing was imported: use "
            "`manage.py import_bundle FILE` on the machine itself."
        )
    is_small = file.size <= MAX_IMMEDIATE_BYTES and count_unpacked_bytes(file) <= MAX_IMMEDIATE_UNPACKED_BYTES
    start = import_run if is_small else queue_import
    return start(file, file.name or "", owner=owner)
