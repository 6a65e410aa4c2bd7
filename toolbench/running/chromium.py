"""Command that finds a Chromium for the browser tests, and installs one if there is none.

`python -m toolbench.running.chromium` prints `Chromium: PATH`. If none is found and none can be installed, it prints an
error message to stderr and exits with 1.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

_PROGRAM_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_APT_COMMANDS = (
    ["apt-get", "update", "-qq"],
    ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"],
)


def find_chromium() -> str | None:
    """Return the path of Chromium, or None if there is none.

    The environment variable CHROMIUM comes first, then PATH, then Playwright. A path in CHROMIUM is not checked.
    """
    if configured_path := os.environ.get("CHROMIUM"):
        return configured_path
    for name in _PROGRAM_NAMES:
        if program_path := shutil.which(name):
            return program_path
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def install_chromium() -> str | None:
    """Install Chromium: as root with apt, and with Playwright if that is not possible or fails.

    Returns:
        The path, or None if no Chromium is found after the installation.
    """
    if os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        if all(subprocess.run(step, env=environment, check=False).returncode == 0 for step in _APT_COMMANDS):
            return find_chromium()
    subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)
    return find_chromium()


def main() -> int:
    """Print the path of a Chromium and return 0; return 1 if none is found and none can be installed."""
    path = find_chromium() or install_chromium()
    if path is None:
        print(
            "There is no Chromium for the browser tests: install one and add it to PATH, or skip these tests with "
            "SKIP_BROWSER=1.",
            file=sys.stderr,
        )
        return 1
    print(f"Chromium: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
