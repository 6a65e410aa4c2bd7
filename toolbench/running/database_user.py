"""The user that PostgreSQL runs as. It refuses to run as root, so root starts it as another user."""

import hashlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_CONFINE_SCRIPT = Path(__file__).with_name("confine.py")
_COPIES_FOLDER = Path("/var/lib")


@dataclass(frozen=True, slots=True)
class ProcessUser:
    """A user for a process.

    Attributes:
        options: options of confine.py.
        owner: user and group that must own the files; None for their current owner.
    """

    options: tuple[str, ...] = ()
    owner: tuple[int, int] | None = None


def build_confined_command(
    command: list[str], *, death_signal: signal.Signals, identity: ProcessUser | None = None
) -> list[str]:
    """Return the command wrapped so that it ends with this process and runs as `identity`.

    Start it from the main thread: on Linux it ends with the thread that started it.
    """
    options = identity.options if identity else ()
    wrapper = [sys.executable, "-I", "-S", str(_CONFINE_SCRIPT), "--parent", str(os.getpid())]
    return [*wrapper, "--signal", str(int(death_signal)), *options, "--", *command]


def find_unprivileged_user() -> ProcessUser:
    """Return the current user if it is not root.

    For root, return a user namespace in which root appears as nobody, so that it can read private folders; if
    namespaces are forbidden, return the user nobody.
    """
    if os.geteuid() != 0:
        return ProcessUser()
    nobody = pwd.getpwnam("nobody")
    namespace = ProcessUser(("--namespace", str(nobody.pw_uid)), (0, 0))
    if _can_run(namespace, Path("/bin/true")):
        return namespace
    return ProcessUser(("--user", str(nobody.pw_uid), str(nobody.pw_gid)), (nobody.pw_uid, nobody.pw_gid))


def ensure_program_reachable(folder: Path, identity: ProcessUser, *, probe: str) -> Path:
    """Return the folder, or a copy of it below /var/lib if the user cannot run a program in it.

    Root's private home is such a folder. Libraries beside the folder's package are copied too.

    Args:
        folder: folder with the programs.
        identity: the user.
        probe: path of a program inside the folder.
    """
    if _can_run(identity, folder / probe, "--version"):
        return folder
    package = folder.parent
    copy_folder = _COPIES_FOLDER / f"toolbench-{hashlib.sha256(str(package).encode()).hexdigest()[:12]}"
    for source in (package, package.with_name(f"{package.name}.libs")):
        if source.exists():
            shutil.copytree(source, copy_folder / source.name, dirs_exist_ok=True, symlinks=True)
    copy_folder.chmod(0o755)
    return copy_folder / package.name / folder.name


def ensure_data_reachable(data: Path, identity: ProcessUser) -> None:
    """Make sure that the user can use the data folder, which must exist.

    The user becomes its owner. A folder that the user cannot reach is moved below /var/lib and replaced by a link.
    """
    if identity.owner is None:
        return
    if not data.is_symlink() and not _can_run(identity, Path("/bin/ls"), str(data.parent)):
        moved_folder = _COPIES_FOLDER / f"toolbench-{hashlib.sha256(str(data).encode()).hexdigest()[:12]}-data"
        shutil.move(data, moved_folder)
        data.symlink_to(moved_folder)
    if data.stat().st_uid != identity.owner[0]:
        _change_owner(data.resolve(), identity.owner)


def _change_owner(folder: Path, owner: tuple[int, int]) -> None:
    os.chown(folder, *owner)
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(Path(parent) / name, *owner, follow_symlinks=False)


def _can_run(identity: ProcessUser, program: Path, *arguments: str) -> bool:
    command = build_confined_command([str(program), *arguments], death_signal=signal.SIGKILL, identity=identity)
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0
