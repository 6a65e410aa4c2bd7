"""Small disk in a mount namespace: filled, and with room again."""

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.chaos.small_disk import find_unshare
from toolbench.installation import ROOT

UNSHARE = find_unshare()
_SCRIPT = """
import json, sys
from pathlib import Path
from benchmarks.chaos.small_disk import Disk

def write():
    try:
        Path(sys.argv[1], "file").write_bytes(b"x" * 100_000)
    except OSError as error:
        return error.errno
    return 0

disk = Disk(Path(sys.argv[1]))
found = [write()]
disk.fill()
Path(sys.argv[1], "file").rename(Path(sys.argv[1], "other"))
found.append(write())
disk.make_room()
found.append(write())
disk.clear()
print(json.dumps(found))
"""


@pytest.mark.skipif(not UNSHARE, reason="this machine allows no mount namespace")
def test_disk_filled_refuses_writes_until_room_is_made(tmp_path: Path) -> None:
    command = [*UNSHARE, sys.executable, "-c", _SCRIPT, str(tmp_path)]

    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    assert json.loads(printed.stdout) == [0, errno.ENOSPC, 0]
    assert list(tmp_path.iterdir()) == []
