"""`manage.py prepare`: static files and the key file."""

import os
import time
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import override_settings

from toolbench.lab.credentials.keys import encrypt

SCRIPT = "js/heat.js"


@pytest.mark.django_db
def test_prepare_replaces_a_static_file_that_seems_newer(tmp_path: Path) -> None:
    """A copy of the data folder gives its files the time of the copy."""
    old = tmp_path / SCRIPT
    old.parent.mkdir()
    old.write_text("of an earlier version")
    os.utime(old, (time.time() + 3600,) * 2)

    with override_settings(STATIC_ROOT=tmp_path, KEY_FILE=tmp_path / "keys"):
        call_command("prepare")

    assert old.read_bytes() == (Path(settings.BASE_DIR) / "static" / SCRIPT).read_bytes()


@pytest.mark.django_db
def test_prepare_creates_the_key_file_for_other_hosts(tmp_path: Path) -> None:
    with override_settings(STATIC_ROOT=tmp_path / "static", KEY_FILE=tmp_path / "keys"):
        call_command("prepare")
        created = (tmp_path / "keys").read_bytes()
        encrypt("sk-secret")
    assert (tmp_path / "keys").read_bytes() == created
