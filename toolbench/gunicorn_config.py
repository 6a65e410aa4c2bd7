"""Configuration of gunicorn: its own log lines have the form that the environment chooses for all others."""

import os
from typing import Any

from toolbench.log_lines import build_logging_config, is_json_format


def _build_config() -> dict[str, Any]:
    """Return the logging configuration; {} for gunicorn's own text."""
    if not is_json_format(os.environ):
        return {}
    config = build_logging_config(os.environ)
    config["loggers"] |= {
        "gunicorn.error": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        # Its lines hold addresses, and some addresses hold tokens; the middleware logs requests by page instead.
        "gunicorn.access": {"handlers": [], "level": "CRITICAL", "propagate": False},
    }
    return config


logconfig_dict = _build_config()
