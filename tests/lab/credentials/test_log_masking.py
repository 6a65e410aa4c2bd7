import io
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from celery.utils.log import ColorFormatter
from django.conf import settings

from toolbench.lab.credentials.log_masking import install_log_masking
from toolbench.providers.masking.secrets import build_masker

KEY = "sk-logged-0123456789"
_UNCAUGHT = f"""
import django; django.setup()
from toolbench.providers.masking.secrets import build_masker
build_masker({KEY!r}, ())
raise RuntimeError("refused " + {KEY!r})
"""


@pytest.fixture
def written(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """Yield the output of a logger with the given formatter."""
    build_masker(KEY, ())
    before, stream = logging.getLogRecordFactory(), io.StringIO()
    hooks = sys.excepthook, threading.excepthook
    install_log_masking()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(request.param)
    logging.getLogger("tests.masked").addHandler(handler)
    yield stream
    logging.getLogger("tests.masked").removeHandler(handler)
    logging.setLogRecordFactory(before)
    sys.excepthook, threading.excepthook = hooks


@pytest.mark.parametrize("written", [logging.Formatter("%(message)s"), ColorFormatter("%(message)s")], indirect=True)
def test_install_log_masking_removes_key_from_message_and_traceback(written: io.StringIO) -> None:
    logger = logging.getLogger("tests.masked")
    try:
        raise ValueError(f"Illegal header value {KEY}")
    except ValueError as error:
        logger.exception("Trial failed with %s", error)
        logger.warning("The key %s is refused", KEY, stack_info=True)
    text = written.getvalue()
    assert KEY not in text
    assert text.count("*" * len(KEY)) >= 3
    assert "ValueError: Illegal header value" in text


@pytest.mark.parametrize(
    ("program", "status"),
    [
        (_UNCAUGHT, 1),
        (
            _UNCAUGHT.replace("raise", "def fail(): raise") + "import threading; threading.Thread(target=fail).start()",
            0,
        ),
    ],
)
def test_log_masking_uncaught_exception_is_printed_without_key(program: str, status: int) -> None:
    environment = {"DJANGO_SETTINGS_MODULE": "toolbench.settings", "PYTHONPATH": str(settings.BASE_DIR)}
    environment |= {"TOOLBENCH_VAR": str(settings.VAR_DIR)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert KEY not in done.stderr
    assert "RuntimeError: refused " + "*" * len(KEY) in done.stderr
