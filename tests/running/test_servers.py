"""PostgreSQL and Valkey from the wheels."""

import pytest
from django.conf import settings
from django.db import connection
from kombu import Connection

from toolbench.running.errors import RunnerError
from toolbench.running.servers import check_database


@pytest.mark.django_db
def test_the_database_is_a_postgresql_of_our_own() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        assert int(cursor.fetchone()[0]) >= 180000


def test_the_broker_keeps_a_message_for_whoever_asks(servers: None) -> None:
    with Connection(settings.CELERY_BROKER_URL) as broker:
        queue = broker.SimpleQueue("greetings")
        queue.put("hello")
        assert queue.get(timeout=5).payload == "hello"
        queue.close()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://me:hush@127.0.0.1:9/bench", "(127.0.0.1:9/bench) does not answer"),
        ("postgresql://me:hush@127.0.0.1:port/bench", "(no address)"),
        ("host=127.0.0.1 port=9 password=hush", "(no address)"),
    ],
)
def test_unreachable_database_gets_one_sentence_without_password(url: str, said: str) -> None:
    with pytest.raises(RunnerError) as refused:
        check_database(url)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "hush" not in str(refused.value)
    assert "leave DATABASE_URL out" in str(refused.value)
