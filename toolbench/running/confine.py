"""Script that runs a command which, on Linux, ends with its parent process. Options choose another user.

Usage: `python -I -S confine.py --parent PID --signal N [--namespace UID | --user UID GID] -- COMMAND…`
PID is the number of the parent process. When the parent ends, the command gets the signal N. The command replaces the
script in the same process.
"""

import argparse
import ctypes
import os
import signal
import sys

_CLONE_NEWUSER = 0x10000000
_PR_SET_PDEATHSIG = 1


def enter_namespace(uid: int) -> None:
    """Enter a user namespace in which `uid` is the user and group number of this process.

    Outside of the namespace, user and group do not change.

    Raises:
        OSError: user namespaces are forbidden.
    """
    outer_uid, outer_gid = os.geteuid(), os.getegid()
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(_CLONE_NEWUSER) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    _write_file("/proc/self/setgroups", "deny")
    _write_file("/proc/self/uid_map", f"{uid} {outer_uid} 1")
    _write_file("/proc/self/gid_map", f"{uid} {outer_gid} 1")


def drop_to_user(uid: int, gid: int) -> None:
    """Change permanently from root to another user, without supplementary groups."""
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def die_with_parent(parent_pid: int, signal_number: int) -> None:
    """Make the kernel send a signal to this process when its parent ends; do nothing on systems other than Linux.

    Call it after a change of user, which would cancel the request to the kernel. If the parent has already ended, this
    process is killed at once.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal_number)
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal.SIGKILL)


def _write_file(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def main() -> None:
    """Change the user if an option says so, then replace this script by the command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--signal", type=int, required=True)
    parser.add_argument("--namespace", type=int)
    parser.add_argument("--user", type=int, nargs=2)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    if arguments.namespace is not None:
        enter_namespace(arguments.namespace)
    if arguments.user is not None:
        drop_to_user(*arguments.user)
    die_with_parent(arguments.parent, arguments.signal)
    os.execvp(arguments.command[0], arguments.command)


if __name__ == "__main__":
    main()
