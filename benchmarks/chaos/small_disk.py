"""A mount namespace with a small tmpfs for the data, so that the disk can be full without harm to the machine.

The disk is filled by shrinking the tmpfs to what it holds: nothing is written, and no memory is used for it."""

import os
import subprocess
import sys
from pathlib import Path

SIZE_MB = 4000  # at most; only what is written takes memory
_INSIDE_VARIABLE = "TOOLBENCH_CHAOS_NAMESPACE"
_UNSHARE = ("unshare", "--mount", "--propagation", "private")
_AS_ROOT = ("unshare", "--user", "--map-root-user", "--mount", "--propagation", "private")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def enter_namespace(module: str, *options: str) -> bool:
    """Start this program again in a mount namespace of its own, where the machine allows one.

    Args:
        module: what `python -m` runs again, with the same arguments.
        options: of `unshare`, for further namespaces.

    Returns:
        True inside the namespace; False where there can be none, in the program as it is.
    """
    if os.environ.get(_INSIDE_VARIABLE):
        return True
    if unshare := find_unshare(*options):
        os.environ[_INSIDE_VARIABLE] = "1"
        os.execvp(unshare[0], [*unshare, sys.executable, "-m", module, *sys.argv[1:]])
    return False


def find_unshare(*options: str) -> tuple[str, ...]:
    """Return the command that makes a mount namespace here, and what `options` name; () where none can."""
    commands = ((*unshare, *options) for unshare in (_UNSHARE, _AS_ROOT))
    return next((unshare for unshare in commands if _can_mount(unshare)), ())


def _can_mount(unshare: tuple[str, ...]) -> bool:
    command = [*unshare, "mount", "-t", "tmpfs", "none", "/tmp"]
    try:
        return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0
    except FileNotFoundError:
        return False


class Disk:
    """The tmpfs on `folder`, for as long as the namespace lives."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", _render_size(SIZE_MB * 1_000_000), "none", str(folder)], check=True
        )

    def fill(self) -> None:
        """Leave no free byte. Somebody may write or free something meanwhile, so it is tried until nothing is left."""
        for _ in range(50):
            if self._remount(self._used()) and not self._free():
                return

    def make_room(self) -> None:
        """Give the space back. Raises OSError when it cannot."""
        if not self._remount(SIZE_MB * 1_000_000):
            raise OSError(f"The tmpfs on {self._folder} cannot be enlarged again.")

    def clear(self) -> None:
        """Take the tmpfs away, and everything on it."""
        subprocess.run(["umount", "--lazy", str(self._folder)], check=True)

    def used_mb(self) -> float:
        return self._used() / 1_000_000

    def _used(self) -> int:
        found = os.statvfs(self._folder)
        return (found.f_blocks - found.f_bfree) * found.f_frsize

    def _free(self) -> int:
        return os.statvfs(self._folder).f_bfree

    def _remount(self, size: int) -> bool:
        options = f"remount,{_render_size(max(size, _PAGE_BYTES))}"
        # With type and source given, mount does not take over the old options, which a user namespace refuses.
        command = ["mount", "-t", "tmpfs", "-o", options, "none", str(self._folder)]
        return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0


def _render_size(count: int) -> str:
    return f"size={count}"
