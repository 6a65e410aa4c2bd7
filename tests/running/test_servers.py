"""PostgreSQL and Valkey from the wheels."""

import pytest
from django.conf import settings
from django.db import connection
from kombu import Connection


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
