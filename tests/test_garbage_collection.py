"""Garbage collection of long-running processes, tested in its own process since it changes the interpreter."""

import subprocess
import sys

from toolbench.garbage_collection import ALLOCATION_THRESHOLD
from toolbench.installation import ROOT

_SCRIPT = """
import gc
from toolbench.garbage_collection import collect_rarely, freeze_loaded_objects
freeze_loaded_objects()
collect_rarely()
print(gc.get_threshold()[0], gc.get_freeze_count() > 1000, gc.isenabled())
"""


_WEB_SCRIPT = """
import gc
from toolbench import wsgi
wsgi.warm_up.prepare_results = lambda: print(gc.get_freeze_count())
wsgi.prepare_application()
print(gc.get_freeze_count() > 1000, gc.get_threshold()[0])
"""


def test_freeze_loaded_objects_leaves_collector_enabled() -> None:
    printed = subprocess.run([sys.executable, "-c", _SCRIPT], cwd=ROOT, check=True, capture_output=True, text=True)
    assert printed.stdout.split() == [str(ALLOCATION_THRESHOLD), "True", "True"]


def test_prepare_application_freezes_results_after_preparing_them() -> None:
    printed = subprocess.run([sys.executable, "-c", _WEB_SCRIPT], cwd=ROOT, check=True, capture_output=True, text=True)
    assert printed.stdout.split() == ["0", "True", str(ALLOCATION_THRESHOLD)]
