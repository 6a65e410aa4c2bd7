"""User as which PostgreSQL runs: the server refuses to run as root, so root has to start it as another user."""

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
    """User as which a process runs.

    Attributes:
        options: options of confine.py, () for the current user.
        owner: (uid, gid) that must own the process's files; None to leave their owner unchanged.
    """

    options: tuple[str, ...] = ()
    owner: tuple[int, int] | None = None


def build_confined_command(
    command: list[str], *, death_signal: signal.Signals, user: ProcessUser | None = None
) -> list[str]:
    """Wrap a command so that it runs as `user` and, on Linux, ends together with this process.

    Start the returned command from the main thread: on Linux it ends with the thread that started it.

    Args:
        command: the program and its arguments.
        death_signal: signal that the kernel sends to the command when this process ends.
        user: None for the current user.
    """
    options = user.options if user else ()
    wrapper = [sys.executable, "-I", "-S", str(_CONFINE_SCRIPT), "--parent", str(os.getpid())]
    return [*wrapper, "--signal", str(int(death_signal)), *options, "--", *command]


def find_unprivileged_user() -> ProcessUser:
    """Return a user as which PostgreSQL can run.

    Returns:
        The current user if it is not root. For root, a user namespace: inside it, the process has the uid of nobody,
        so that PostgreSQL starts; outside it, the process is still root, so that it can read root's folders. If user
        namespaces are forbidden, the user nobody.
    """
    if os.geteuid() != 0:
        return ProcessUser()
    nobody = pwd.getpwnam("nobody")
    namespace = ProcessUser(("--namespace", str(nobody.pw_uid)), (0, 0))
    if _can_run(namespace, Path("/bin/true")):
        return namespace
    return ProcessUser(("--user", str(nobody.pw_uid), str(nobody.pw_gid)), (nobody.pw_uid, nobody.pw_gid))


def ensure_program_reachable(folder: Path, user: ProcessUser, *, program: str) -> Path:
    """Return a folder from which the user can run programs: `folder`, or a copy of it below /var/lib.

    A copy is needed if root's private home contains `folder`, for instance. It consists of the package, which is the
    parent of `folder`, and of the libraries beside the package.

    Args:
        folder: folder with the programs.
        user: user as which the programs run.
        program: path of the program to try, relative to the folder.
    """
    if _can_run(user, folder / program, "--version"):
        return folder
    package = folder.parent
    copy_folder = _COPIES_FOLDER / f"toolbench-{hashlib.sha256(str(package).encode()).hexdigest()[:12]}"
    for source in (package, package.with_name(f"{package.name}.libs")):
        if source.exists():
            shutil.copytree(source, copy_folder / source.name, dirs_exist_ok=True, symlinks=True)
    copy_folder.chmod(0o755)
    return copy_folder / package.name / folder.name


def ensure_data_reachable(data: Path, user: ProcessUser) -> None:
    """Make the user the owner of the data folder, which must exist; do nothing if `user.owner` is None.

    A folder that the user cannot reach is moved below /var/lib and replaced by a symbolic link.
    """
    if user.owner is None:
        return
    if not data.is_symlink() and not _can_run(user, Path("/bin/ls"), str(data.parent)):
        moved_folder = _COPIES_FOLDER / f"toolbench-{hashlib.sha256(str(data).encode()).hexdigest()[:12]}-data"
        shutil.move(data, moved_folder)
        data.symlink_to(moved_folder)
    if data.stat().st_uid != user.owner[0]:
        _change_owner(data.resolve(), user.owner)


def _change_owner(folder: Path, owner: tuple[int, int]) -> None:
    os.chown(folder, *owner)
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(Path(parent) / name, *owner, follow_symlinks=False)


def _can_run(user: ProcessUser, program: Path, *arguments: str) -> bool:
    command = build_confined_command([str(program), *arguments], death_signal=signal.SIGKILL, user=user)
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0
