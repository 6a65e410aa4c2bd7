"""Masking of logs: the secrets that this process has used are masked in every record and traceback."""

import logging
import sys
import threading
import traceback
from types import TracebackType
from typing import Any

from toolbench.providers.masking.secrets import mask_known_secrets


class MaskedRecord(logging.LogRecord):
    """Log record that masks the secrets that this process has used, in message, traceback and stack."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.exc_info and self.exc_info[0] is not None:
            text = "".join(traceback.format_exception(*self.exc_info))
            self.exc_text = mask_known_secrets(text.rstrip("\n"))  # formatters use it instead of `exc_info`
        if self.stack_info:
            self.stack_info = mask_known_secrets(self.stack_info)

    def getMessage(self) -> str:  # logging prescribes the name
        """Return the masked message."""
        return mask_known_secrets(super().getMessage())


def install_log_masking() -> None:
    """Mask all log records of this process, and the tracebacks of uncaught exceptions in any thread."""
    logging.setLogRecordFactory(MaskedRecord)
    sys.excepthook = _print_masked
    threading.excepthook = _print_masked_in_thread


def _print_masked(error_type: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    sys.stderr.write(mask_known_secrets("".join(traceback.format_exception(error_type, error, trace))))


def _print_masked_in_thread(hook_args: threading.ExceptHookArgs) -> None:
    if hook_args.exc_value is not None and hook_args.exc_type is not SystemExit:
        _print_masked(hook_args.exc_type, hook_args.exc_value, hook_args.exc_traceback)
