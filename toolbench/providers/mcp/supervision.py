"""Process that runs the reader of an MCP server, and at the end kills every process that the reader started.

Usage: `python -m toolbench.providers.mcp.supervision PARENT_PID SECONDS`

The reader (`python -m toolbench.providers.mcp`) uses the standard streams of this process. A server that the reader
starts has its own process group, so it could outlive the reader. On Linux, a process whose parent has ended becomes a
child of this process, which kills it; on other systems this process kills only the reader.
"""

import ctypes
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

TIMEOUT_EXIT_CODE = 124  # the reader did not end within SECONDS
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main() -> int:
    """Run the reader, end all its processes, and return the exit code of the reader."""
    parent_pid, seconds = int(sys.argv[1]), float(sys.argv[2])
    signal.signal(signal.SIGTERM, _exit)
    if not _adopt_orphans(parent_pid):
        return 1
    reader = subprocess.Popen([sys.executable, "-m", "toolbench.providers.mcp"])
    try:
        return reader.wait(seconds)
    except subprocess.TimeoutExpired:
        return TIMEOUT_EXIT_CODE
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end_descendants(reader.pid)


def _exit(signal_number: int, frame: object) -> NoReturn:
    sys.exit(128 + signal_number)


def _adopt_orphans(parent_pid: int) -> bool:
    """Make orphaned descendants children of this process, and let it get SIGTERM when its parent ends.

    Returns:
        False if the parent has already ended.
    """
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        library.prctl(_PR_SET_CHILD_SUBREAPER, 1)
        library.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    return os.getppid() == parent_pid


def _end_descendants(reader_pid: int) -> None:
    """Kill the children and wait for them, until no further descendant becomes a child of this process."""
    with suppress(ChildProcessError):  # there is no child any more
        while True:
            for pid in _list_children() or [reader_pid]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)


def _list_children() -> list[int]:
    """Return the process numbers of the children; [] where the system does not list them."""
    try:
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except OSError:
        return []


if __name__ == "__main__":
    sys.exit(main())
