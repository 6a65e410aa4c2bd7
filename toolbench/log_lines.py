"""Log lines as text, or as JSON with the ids of the run, trial, provider or request that a process worked on.

Two environment variables configure the log: TOOLBENCH_LOG_FORMAT is `text` or `json`; TOOLBENCH_LOG_LEVEL is the
lowest level at which Toolbench's own messages are written.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

FORMATS = ("text", "json")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
ID_NAMES = ("run", "trial", "provider", "request")
_TEXT_FORMAT = "{asctime} {levelname} {name}: {message}"
_current_ids: ContextVar[Mapping[str, int | str]] = ContextVar("log_ids", default={})  # noqa: B039, the default is never changed


@contextmanager
def log_ids(**ids: int | str) -> Iterator[None]:
    """Add ids to the JSON lines that this thread or task logs within the block.

    Args:
        ids: the ids by name; each name is one of ID_NAMES.
    """
    token = _current_ids.set({**_current_ids.get(), **ids})
    try:
        yield
    finally:
        _current_ids.reset(token)


class JsonLineFormatter(logging.Formatter):
    """Formatter that writes a record as one line of JSON.

    Secrets are masked in the record already (`lab/credentials/log_masking.py`).

    A log call may pass ids as `extra={"trial": 7}`. They replace the ids of the same name from `log_ids`.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line of JSON."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        line |= _current_ids.get()
        record_ids = {name: getattr(record, name, None) for name in ID_NAMES}
        # Django passes the request itself as `request`, which is not an id.
        line |= {name: value for name, value in record_ids.items() if isinstance(value, int | str)}
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            line["traceback"] = record.exc_text or self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class AddressFilter(logging.Filter):
    """Filter that replaces the address of a request by the name of its view, since some addresses hold tokens.

    Django logs the address of each response with a status of 400 or above. If the CSRF check fails, it also logs the
    address of the referring page.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Replace the addresses in the record, and let it pass."""
        request = getattr(record, "request", None)
        path = getattr(request, "path", "")
        if request is None or not path or not isinstance(record.args, tuple):
            return True
        match = request.resolver_match
        names = {request.META.get("HTTP_REFERER", ""): "the referring page"}
        names[path] = match.view_name if match else "no page"
        record.args = tuple(_replace_addresses(argument, names) for argument in record.args)
        return True


def _replace_addresses(argument: object, names: Mapping[str, str]) -> object:
    """Return a log argument with each address replaced by its name in `names`; other arguments than strings are kept.

    Django logs addresses in an escaped form. The address "/" is kept, since it has no token.
    """
    if isinstance(argument, str):
        for address, name in names.items():
            if len(address) > 1:
                argument = argument.replace(address.encode("unicode_escape").decode("ascii"), name)
    return argument


def is_json_format(environment: Mapping[str, str]) -> bool:
    """Return whether the environment chooses log lines in JSON."""
    return environment.get("TOOLBENCH_LOG_FORMAT", "") == "json"


def build_logging_config(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the configuration for `logging.config.dictConfig`. Lines go to standard error.

    Raises:
        ValueError: a variable has an unknown value; the message names the known ones.
    """
    line_format = _choose(environment, "TOOLBENCH_LOG_FORMAT", FORMATS, "text")
    level = _choose(environment, "TOOLBENCH_LOG_LEVEL", LEVELS, "WARNING")
    formatters = {
        "text": {"format": _TEXT_FORMAT, "style": "{"},
        "json": {"()": "toolbench.log_lines.JsonLineFormatter"},
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {line_format: formatters[line_format]},
        "filters": {"addresses": {"()": "toolbench.log_lines.AddressFilter"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": line_format, "filters": ["addresses"]}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            "toolbench": {"level": level},
            "django.request": {"filters": ["addresses"]},  # also for handlers that other code adds
            "django.security.csrf": {"filters": ["addresses"]},
            "httpx": {"level": "WARNING"},  # at INFO, httpx logs the addresses of webhooks, which may be secret
        },
    }


def _choose(environment: Mapping[str, str], name: str, choices: tuple[str, ...], default: str) -> str:
    value = environment.get(name, "") or default
    if value not in choices:
        raise ValueError(f"{name} must be {' or '.join(choices)}, not {value!r}.")
    return value
