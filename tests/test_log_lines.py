"""Log lines as JSON: ids, masking, and the settings for the format."""

import io
import json
import logging
import logging.config
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.environment import VAR_FOLDER
from toolbench.installation import ROOT
from toolbench.lab.credentials.log_masking import MaskedRecord
from toolbench.log_lines import JsonLineFormatter, build_logging_config, log_ids
from toolbench.providers.masking.secrets import build_masker

KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """Stream to which the logger `toolbench.tested` writes JSON lines."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLineFormatter())
    logger = logging.getLogger("toolbench.tested")
    logger.addHandler(handler)
    yield stream
    logger.removeHandler(handler)


def read_lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_json_line_formatter_writes_ids_of_enclosing_blocks(lines: io.StringIO) -> None:
    logger = logging.getLogger("toolbench.tested")
    with log_ids(run=3, provider=5):
        with log_ids(trial=7):
            logger.warning("Inside “%s”", "ü\n")
        logger.warning("Between", extra={"trial": 8})
    logger.warning("Outside")
    inside, between, outside = read_lines(lines)
    assert {name: inside[name] for name in ("run", "provider", "trial")} == {"run": 3, "provider": 5, "trial": 7}
    assert (inside["message"], inside["level"], inside["logger"]) == ("Inside “ü\n”", "WARNING", "toolbench.tested")
    assert inside["time"].endswith("+00:00")
    assert (between["run"], between["trial"]) == (3, 8)
    assert outside.keys() == {"time", "level", "logger", "message", "process"}


def test_json_line_formatter_omits_ids_that_are_objects(lines: io.StringIO) -> None:
    logging.getLogger("toolbench.tested").warning("x", extra={"request": object()})
    assert "request" not in read_lines(lines)[0]


def test_masked_record_masks_key_in_message_and_traceback(lines: io.StringIO) -> None:
    build_masker(KEY, ())
    assert logging.getLogRecordFactory() is MaskedRecord
    try:
        raise ValueError(f"refused {KEY}")
    except ValueError:
        logging.getLogger("toolbench.tested").exception("Key %s", KEY)
    (line,) = read_lines(lines)
    assert KEY not in lines.getvalue()
    assert line["error"] == "ValueError"
    assert "Traceback" in line["traceback"]


def test_build_logging_config_defaults_to_text_and_warnings() -> None:
    config = build_logging_config({})
    assert config["loggers"]["toolbench"]["level"] == "WARNING"
    assert list(config["formatters"]) == ["text"]


@pytest.mark.parametrize("variable", ["TOOLBENCH_LOG_FORMAT", "TOOLBENCH_LOG_LEVEL"])
def test_build_logging_config_refuses_unknown_value(variable: str) -> None:
    with pytest.raises(ValueError, match=f"{variable} must be .* or .*, not 'loud'"):
        build_logging_config({variable: "loud"})


def test_logging_config_of_environment_writes_json_lines() -> None:
    code = "import django, logging; django.setup(); logging.getLogger('toolbench.x').info('Begun')"
    chosen = {"TOOLBENCH_LOG_FORMAT": "json", "TOOLBENCH_LOG_LEVEL": "INFO", "TOOLBENCH_VAR": str(VAR_FOLDER)}
    command = [sys.executable, "-c", code]
    printed = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **chosen}, capture_output=True, text=True, check=True, timeout=120
    )
    assert json.loads(printed.stderr)["message"] == "Begun"
