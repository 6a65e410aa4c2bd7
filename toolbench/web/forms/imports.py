"""Function that imports an uploaded file, or queues its import."""

from typing import Any

from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile

from toolbench.installation import build_command
from toolbench.lab.interchange.import_run import import_run
from toolbench.lab.interchange.queue import queue_import
from toolbench.lab.interchange.safe_zip import RunImportError, count_unpacked_bytes
from toolbench.lab.models import Replay, Run

MAX_FILE_BYTES = 64 << 20
# Limits of a file that is imported during the request, which takes less than two seconds.
MAX_IMMEDIATE_BYTES = 256 << 10
MAX_IMMEDIATE_UNPACKED_BYTES = 2 << 20  # of an archive after unpacking


def start_import(file: "UploadedFile[Any] | None", owner: User | None) -> Run | Replay:
    """Import a small file at once, or queue the import of a large one for a worker.

    Returns:
        The imported run, or the queued import.

    Raises:
        RunImportError: nothing was imported; the message gives the reason and the next step.
    """
    if file is None or file.size is None:
        raise RunImportError("No file was sent. Choose a file of at most 64 MB.")
    if file.size > MAX_FILE_BYTES:
        raise RunImportError(
            f"The file has {file.size:,} bytes; an upload may have {MAX_FILE_BYTES:,}. Nothing was imported: use "
            f"`{build_command('import_bundle', 'FILE')}` on the machine of Toolbench."
        )
    is_small = file.size <= MAX_IMMEDIATE_BYTES and count_unpacked_bytes(file) <= MAX_IMMEDIATE_UNPACKED_BYTES
    import_file = import_run if is_small else queue_import
    return import_file(file, file.name or "", owner=owner)
