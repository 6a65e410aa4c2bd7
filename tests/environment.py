"""Environment of the tests, loaded by pytest first, so that Django's settings name the servers of the test session.

This module starts nothing. A session has one private folder for sockets and data; each xdist worker has its own
database, broker number and var folder.
"""

import os
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

WORKER_ID = os.environ.get("PYTEST_XDIST_WORKER", "")
SESSION_FOLDER = Path(os.environ.get("TOOLBENCH_TEST_FOLDER") or tempfile.mkdtemp(prefix="tb-test-", dir="/tmp"))
SOCKET_FOLDER = SESSION_FOLDER / "s"
VAR_FOLDER = SESSION_FOLDER / (WORKER_ID or "main")
_WORKER_NUMBER = int(WORKER_ID.removeprefix("gw") or 0) if WORKER_ID else 0

if sys.dont_write_bytecode:  # without bytecode each process would compile every file
    sys.dont_write_bytecode = False
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(SESSION_FOLDER / "bytecode")
    del os.environ["PYTHONDONTWRITEBYTECODE"]

SOCKET_FOLDER.mkdir(mode=0o700, exist_ok=True)
(VAR_FOLDER / "static").mkdir(parents=True, exist_ok=True)

os.environ |= {
    "TOOLBENCH_TEST_FOLDER": str(SESSION_FOLDER),
    "TOOLBENCH_VAR": str(VAR_FOLDER),
    "DATABASE_URL": f"postgresql://postgres@{quote(str(SOCKET_FOLDER), safe='')}/toolbench",
    "REDIS_URL": f"unix://{SOCKET_FOLDER}/valkey.sock?db={_WORKER_NUMBER}",
    "TOOLBENCH_LEASE_SECONDS": "3",
    "TOOLBENCH_HEARTBEAT_SECONDS": "0.5",
    "TOOLBENCH_SWEEP_SECONDS": "0.5",
    "STATIC_COLLECTED": "",
}
