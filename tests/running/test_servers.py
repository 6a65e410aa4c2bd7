"""PostgreSQL and Valkey from their wheels."""

from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from kombu import Connection

from toolbench.running.errors import RunnerError
from toolbench.running.servers import build_memory_settings, check_database, read_memory_mb


@pytest.mark.django_db
def test_database_is_the_bundled_postgresql() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        assert int(cursor.fetchone()[0]) >= 180000


def test_broker_keeps_a_message_until_it_is_read(servers: None) -> None:
    with Connection(settings.CELERY_BROKER_URL) as broker:
        queue = broker.SimpleQueue("greetings")
        queue.put("hello")
        assert queue.get(timeout=5).payload == "hello"
        queue.close()


@pytest.mark.parametrize(
    ("url", "address_text"),
    [
        ("postgresql://me:hush@127.0.0.1:9/bench", "(127.0.0.1:9/bench) does not answer"),
        ("postgresql://me:hush@127.0.0.1:port/bench", "(no address)"),
        ("host=127.0.0.1 port=9 password=hush", "(no address)"),
    ],
)
def test_check_database_names_an_unreachable_one_without_its_password(url: str, address_text: str) -> None:
    with pytest.raises(RunnerError) as raised:
        check_database(url)
    assert address_text in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "hush" not in str(raised.value)
    assert "leave DATABASE_URL out" in str(raised.value)


@pytest.mark.parametrize(
    ("memory_mb", "buffers", "work"),
    [(512, "128MB", "4MB"), (2_048, "256MB", "8MB"), (4_096, "512MB", "16MB"), (65_536, "512MB", "32MB")],
)
def test_build_memory_settings_grow_with_memory_up_to_limit(memory_mb: int, buffers: str, work: str) -> None:
    settings_by_name = {"shared_buffers": buffers, "work_mem": work, "min_dynamic_shared_memory": "256MB"}
    assert build_memory_settings(memory_mb) == settings_by_name


def test_read_memory_mb_follows_limit_of_container(tmp_path: Path) -> None:
    limit, unlimited = tmp_path / "limit", tmp_path / "unlimited"
    limit.write_text("104857600\n")
    unlimited.write_text("max\n")
    machine = read_memory_mb((tmp_path / "absent",))
    assert machine > 100
    assert read_memory_mb((unlimited,)) == machine
    assert read_memory_mb((unlimited, limit)) == 100


@pytest.mark.django_db
def test_postgres_starts_with_memory_settings() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_size_bytes(current_setting('shared_buffers')), current_setting('work_mem')")
        buffers, work_mem = cursor.fetchone()
    expected = build_memory_settings(read_memory_mb())
    assert buffers == int(expected["shared_buffers"].removesuffix("MB")) * 1_048_576
    assert work_mem == expected["work_mem"]
