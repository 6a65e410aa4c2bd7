"""Configuration of gunicorn, whose log lines are JSON if TOOLBENCH_LOG_FORMAT is `json`, like those of Toolbench."""

import os
from typing import Any

from toolbench.log_lines import build_logging_config, is_json_format


def _build_config() -> dict[str, Any]:
    """Return the logging configuration; {} for gunicorn's default one, which writes text."""
    if not is_json_format(os.environ):
        return {}
    config = build_logging_config(os.environ)
    config["loggers"] |= {
        "gunicorn.error": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        # An access line contains the URL, which may contain a token; the middleware logs the name of the page instead.
        "gunicorn.access": {"handlers": [], "level": "CRITICAL", "propagate": False},
    }
    return config


logconfig_dict = _build_config()
