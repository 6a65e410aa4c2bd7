"""Memory settings of the database by the memory of the machine."""

from pathlib import Path

import pytest
from django.db import connection

from toolbench.running.database_memory import build_memory_settings, read_memory_mb


@pytest.mark.parametrize(
    ("memory_mb", "buffers", "work"),
    [(512, "128MB", "4MB"), (2_048, "256MB", "8MB"), (4_096, "512MB", "16MB"), (65_536, "512MB", "32MB")],
)
def test_settings_grow_with_the_memory_up_to_a_limit(memory_mb: int, buffers: str, work: str) -> None:
    assert build_memory_settings(memory_mb) == {"shared_buffers": buffers, "work_mem": work}


def test_limit_of_the_container_counts(tmp_path: Path) -> None:
    limit, unlimited = tmp_path / "limit", tmp_path / "unlimited"
    limit.write_text("104857600\n")
    unlimited.write_text("max\n")
    machine = read_memory_mb((tmp_path / "absent",))
    assert machine > 100
    assert read_memory_mb((unlimited,)) == machine
    assert read_memory_mb((unlimited, limit)) == 100


@pytest.mark.django_db
def test_servers_start_with_these_settings() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_size_bytes(current_setting('shared_buffers')), current_setting('work_mem')")
        buffers, work_mem = cursor.fetchone()
    settings = build_memory_settings(read_memory_mb())
    assert buffers == int(settings["shared_buffers"].removesuffix("MB")) * 1_048_576
    assert work_mem == settings["work_mem"]
