"""Mount namespace with a small tmpfs for the data, so that a full disk does no harm to the machine.

The disk is filled by reducing the size of the tmpfs to the space in use. Nothing is written for it.
"""

import os
import subprocess
import sys
from pathlib import Path

SIZE_MB = 4000  # limit; a tmpfs takes only the memory that is written
_INSIDE_VARIABLE = "TOOLBENCH_CHAOS_NAMESPACE"
_UNSHARE = ("unshare", "--mount", "--propagation", "private")
_AS_ROOT = ("unshare", "--user", "--map-root-user", "--mount", "--propagation", "private")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def enter_namespace(module: str, *options: str) -> bool:
    """Start this program again in a mount namespace of its own if the machine allows one.

    Args:
        module: the module that `python -m` runs again, with the same arguments.
        options: options of `unshare` for further namespaces.

    Returns:
        True in the program inside the namespace; False if the machine allows none.
    """
    if os.environ.get(_INSIDE_VARIABLE):
        return True
    if unshare := find_unshare(*options):
        os.environ[_INSIDE_VARIABLE] = "1"
        os.execvp(unshare[0], [*unshare, sys.executable, "-m", module, *sys.argv[1:]])
    return False


def find_unshare(*options: str) -> tuple[str, ...]:
    """Return the command that makes the namespaces; empty if the machine does not allow them."""
    commands = ((*unshare, *options) for unshare in (_UNSHARE, _AS_ROOT))
    return next((unshare for unshare in commands if _can_mount(unshare)), ())


def _can_mount(unshare: tuple[str, ...]) -> bool:
    command = [*unshare, "mount", "-t", "tmpfs", "none", "/tmp"]
    try:
        return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0
    except FileNotFoundError:
        return False


class Disk:
    """Tmpfs on a folder; it exists until it is unmounted or the namespace ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", _render_size(SIZE_MB * 1_000_000), "none", str(folder)], check=True
        )

    def fill(self) -> None:
        """Leave no free byte. Try up to 50 times, since processes may write or free space meanwhile."""
        for _ in range(50):
            if self._remount(self._used()) and not self._free():
                return

    def make_room(self) -> None:
        """Restore the size.

        Raises:
            OSError: the mount failed.
        """
        if not self._remount(SIZE_MB * 1_000_000):
            raise OSError(f"The size of the tmpfs on {self._folder} cannot be restored.")

    def clear(self) -> None:
        """Unmount the tmpfs, which deletes everything on it."""
        subprocess.run(["umount", "--lazy", str(self._folder)], check=True)

    def used_mb(self) -> float:
        """Return the space in use."""
        return self._used() / 1_000_000

    def _used(self) -> int:
        found = os.statvfs(self._folder)
        return (found.f_blocks - found.f_bfree) * found.f_frsize

    def _free(self) -> int:
        return os.statvfs(self._folder).f_bfree

    def _remount(self, size: int) -> bool:
        options = f"remount,{_render_size(max(size, _PAGE_BYTES))}"
        # With a type and a source, mount does not add the old options, which a user namespace refuses.
        command = ["mount", "-t", "tmpfs", "-o", options, "none", str(self._folder)]
        return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0


def _render_size(count: int) -> str:
    return f"size={count}"
