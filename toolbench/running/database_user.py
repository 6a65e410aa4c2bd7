"""Who PostgreSQL runs as. It refuses root, so root lends it another name."""

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
    """`options` go to confine.py; `owner` is who must own the files, None for whoever owns them now."""

    options: tuple[str, ...] = ()
    owner: tuple[int, int] | None = None


def build_confined_command(
    command: list[str], *, death_signal: signal.Signals, identity: ProcessUser | None = None
) -> list[str]:
    """The command, wrapped so that it ends when the calling process ends and runs as `identity`. To be started from
    the main thread: on Linux it dies with the thread that started it."""
    options = identity.options if identity else ()
    wrapper = [sys.executable, "-I", "-S", str(_CONFINE_SCRIPT), "--parent", str(os.getpid())]
    return [*wrapper, "--signal", str(int(death_signal)), *options, "--", *command]


def find_unprivileged_user() -> ProcessUser:
    """Ourselves for an ordinary user. For root: a namespace in which root is called nobody, which reaches private
    homes; where namespaces are forbidden, the user nobody."""
    if os.geteuid() != 0:
        return ProcessUser()
    nobody = pwd.getpwnam("nobody")
    namespace = ProcessUser(("--namespace", str(nobody.pw_uid)), (0, 0))
    if _can_run(namespace, Path("/bin/true")):
        return namespace
    return ProcessUser(("--user", str(nobody.pw_uid), str(nobody.pw_gid)), (nobody.pw_uid, nobody.pw_gid))


def ensure_program_reachable(folder: Path, identity: ProcessUser, *, probe: str) -> Path:
    """`folder`, or a copy of it below /var/lib when `identity` cannot run `probe` (a path inside) where it is, as in
    root's private home. Libraries beside the folder's package are copied too."""
    if _can_run(identity, folder / probe, "--version"):
        return folder
    package = folder.parent
    place = _COPIES_FOLDER / f"toolbench-{hashlib.sha256(str(package).encode()).hexdigest()[:12]}"
    for source in (package, package.with_name(f"{package.name}.libs")):
        if source.exists():
            shutil.copytree(source, place / source.name, dirs_exist_ok=True, symlinks=True)
    place.chmod(0o755)
    return place / package.name / folder.name


def ensure_data_reachable(data: Path, identity: ProcessUser) -> None:
    """Makes sure that `identity` can use the data folder: owns it, and moves it below /var/lib behind a link if its
    way there is barred. The folder must exist."""
    if identity.owner is None:
        return
    if not data.is_symlink() and not _can_run(identity, Path("/bin/ls"), str(data.parent)):
        place = _COPIES_FOLDER / f"toolbench-{hashlib.sha256(str(data).encode()).hexdigest()[:12]}-data"
        shutil.move(data, place)
        data.symlink_to(place)
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
