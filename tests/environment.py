"""Read by pytest before anything else, so that Django's settings point at servers of our own.

Nothing is started here. The session makes one private folder for sockets and data; each xdist worker has a database,
a broker number and a var folder of its own.
"""

import os
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
FOLDER = Path(os.environ.get("TOOLBENCH_TEST_FOLDER") or tempfile.mkdtemp(prefix="tb-test-", dir="/tmp"))
SOCKETS = FOLDER / "s"
VAR = FOLDER / (WORKER or "main")
_NUMBER = int(WORKER.removeprefix("gw") or 0) if WORKER else 0

if sys.dont_write_bytecode:  # then every process would compile every file anew; the session keeps that to itself
    sys.dont_write_bytecode = False
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(FOLDER / "bytecode")
    del os.environ["PYTHONDONTWRITEBYTECODE"]

SOCKETS.mkdir(mode=0o700, exist_ok=True)
(VAR / "static").mkdir(parents=True, exist_ok=True)

os.environ |= {
    "TOOLBENCH_TEST_FOLDER": str(FOLDER),
    "TOOLBENCH_VAR": str(VAR),
    "DATABASE_URL": f"postgresql://postgres@{quote(str(SOCKETS), safe='')}/toolbench",
    "REDIS_URL": f"unix://{SOCKETS}/valkey.sock?db={_NUMBER}",
    "TOOLBENCH_LEASE_SECONDS": "3",
    "TOOLBENCH_HEARTBEAT_SECONDS": "0.5",
    "TOOLBENCH_SWEEP_SECONDS": "0.5",
    "STATIC_COLLECTED": "",
}
