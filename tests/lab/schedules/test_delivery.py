import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone
from pytest_django import Settings

from tests.factories import make_run
from tests.lab.conftest import RunInThread
from tests.lab.schedules.scheduled import make_alert_delivery, make_rule, make_schedule
from toolbench.lab.models import Alert, AlertDelivery, AlertRule
from toolbench.lab.schedules.delivery import MAX_ATTEMPTS, deliver_due_alerts, retry_delivery, send_test
from toolbench.providers.scripted_server import (
    ConnectionEnd,
    ReceivedRequest,
    ScriptedReply,
    ScriptedServer,
    json_reply,
)

pytestmark = pytest.mark.django_db
NOBODY = "http://127.0.0.1:9/hook/s3cr3t-token"


class Hook:
    """A webhook whose answers a test chooses."""

    def __init__(self) -> None:
        self.status = 200

    def __call__(self, seen: ReceivedRequest) -> ScriptedReply:
        return ScriptedReply(self.status, {"content-type": "application/json"}, b"{}")


@pytest.fixture
def hook() -> Hook:
    return Hook()


@pytest.fixture
def server(hook: Hook) -> Iterator[ScriptedServer]:
    with ScriptedServer(hook) as running:
        yield running


def make_delivery(rule: AlertRule, channel: str = "webhook") -> AlertDelivery:
    return make_alert_delivery(make_run(schedule=rule.schedule), rule, channel)


def make_due() -> None:
    AlertDelivery.objects.update(next_attempt_at=timezone.now() - timedelta(seconds=1))


def test_webhook_gets_the_alert_once(server: ScriptedServer) -> None:
    rule = make_rule("drift", make_schedule(), webhook=f"{server.base_url}/hook")
    delivery = make_delivery(rule)
    assert (deliver_due_alerts(), deliver_due_alerts()) == (1, 0)
    (seen,) = server.seen
    body = json.loads(seen.body)
    assert (body["title"], body["kind"], body["test"]) == ("Core: Success drops", "drift", False)
    assert body["text"] == f"Core, run {delivery.alert.run_id}: Success dropped."
    assert body["url"].endswith(f"/runs/{delivery.alert.run_id}/")
    assert seen.headers["idempotency-key"] == body["id"]
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts, delivery.last_error) == ("sent", 1, "")


def test_failing_webhook_is_tried_again_and_shown(server: ScriptedServer, hook: Hook) -> None:
    delivery = make_delivery(make_rule("drift", make_schedule(), webhook=server.base_url))
    hook.status = 503
    assert deliver_due_alerts() == 0
    delivery.refresh_from_db()
    assert (delivery.state, delivery.last_error) == ("pending", "The webhook answered with status 503.")
    assert delivery.next_attempt_at is not None
    assert delivery.next_attempt_at > timezone.now() + timedelta(seconds=25)
    assert deliver_due_alerts() == 0
    assert len(server.seen) == 1
    hook.status = 204
    make_due()
    assert deliver_due_alerts() == 1
    first, second = (json.loads(seen.body)["id"] for seen in server.seen)
    assert first == second


def test_last_attempt_gives_up_until_a_person_tries_again() -> None:
    delivery = make_delivery(make_rule("drift", make_schedule(), webhook=NOBODY))
    for _ in range(MAX_ATTEMPTS + 2):
        make_due()
        deliver_due_alerts()
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("failed", MAX_ATTEMPTS)
    assert delivery.last_error == "The webhook could not be reached: ConnectError."
    assert retry_delivery(delivery.pk)
    assert not retry_delivery(delivery.pk)


def test_message_is_unclear_and_not_sent_again_if_the_process_ended(server: ScriptedServer) -> None:
    delivery = make_delivery(make_rule("drift", make_schedule(), webhook=server.base_url))
    AlertDelivery.objects.update(state="sending", attempts=1, next_attempt_at=timezone.now())
    assert deliver_due_alerts() == 0
    delivery.refresh_from_db()
    assert delivery.state == "unclear"
    assert server.seen == []


def test_webhook_that_hangs_is_an_error_after_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolbench.lab.schedules.sending.SEND_SECONDS", 0.2)
    with ScriptedServer(lambda seen: ScriptedReply(ending=ConnectionEnd.HANG, declared=9, delay=5)) as running:
        delivery = make_delivery(make_rule("drift", make_schedule(), webhook=running.base_url))
        deliver_due_alerts()
    delivery.refresh_from_db()
    assert delivery.last_error == "The webhook did not answer within 0.2 s."


def test_redirect_of_a_webhook_is_not_followed() -> None:
    with ScriptedServer(lambda seen: ScriptedReply(302, {"location": "/elsewhere"})) as running:
        delivery = make_delivery(make_rule("drift", make_schedule(), webhook=running.base_url))
        deliver_due_alerts()
        assert len(running.seen) == 1
    delivery.refresh_from_db()
    assert delivery.last_error == "The webhook answered with status 302."


def test_no_error_names_the_address() -> None:
    make_delivery(make_rule("drift", make_schedule(), webhook=NOBODY))
    deliver_due_alerts()
    stored = [str(value) for row in AlertDelivery.objects.values() for value in row.values()]
    stored += [str(value) for row in AlertRule.objects.values() for value in row.values()]
    assert not any("s3cr3t-token" in value for value in stored)


def test_address_that_cannot_be_decrypted_is_shown() -> None:
    rule = make_rule("drift", make_schedule(), webhook=NOBODY)
    AlertRule.objects.update(webhook_encrypted=b"not encrypted")
    delivery = make_delivery(rule)
    deliver_due_alerts()
    delivery.refresh_from_db()
    assert delivery.last_error == "The stored address cannot be decrypted. Enter the webhook again."


def test_email_is_sent_by_the_mail_settings() -> None:
    make_delivery(make_rule("drift", make_schedule(), email="a@example.test"), "email")
    assert deliver_due_alerts() == 1
    (message,) = mail.outbox
    assert (message.to, message.subject) == (["a@example.test"], "Toolbench: Core: Success drops")
    assert "Success dropped." in message.body


def test_email_without_a_server_says_what_to_set(settings: Settings) -> None:
    settings.EMAIL_BACKEND, settings.EMAIL_HOST = "django.core.mail.backends.smtp.EmailBackend", ""
    delivery = make_delivery(make_rule("drift", make_schedule(), email="a@example.test"), "email")
    deliver_due_alerts()
    delivery.refresh_from_db()
    assert delivery.last_error == "No mail server is configured. Set EMAIL_HOST and restart Toolbench."
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    make_due()
    deliver_due_alerts()
    delivery.refresh_from_db()
    assert delivery.last_error == "The mail server did not accept the message: ConnectionRefusedError."


def test_test_message_says_what_came_of_each_channel(server: ScriptedServer, hook: Hook) -> None:
    rule = make_rule("below_target", make_schedule(), 90, webhook=server.base_url, email="a@example.test")
    assert send_test(rule) == ["Webhook: the test was sent.", "E-mail: the test was sent."]
    assert json.loads(server.seen[0].body)["test"] is True
    hook.status = 500
    assert send_test(rule)[0] == "Webhook: The webhook answered with status 500."
    assert not Alert.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_schedulers_send_a_message_once(elsewhere: RunInThread) -> None:
    def answer_late(seen: ReceivedRequest) -> Any:
        reply = json_reply({})
        return ScriptedReply(reply.status, reply.headers, reply.body, delay=0.2)

    with ScriptedServer(answer_late) as running:
        for _ in range(3):
            make_delivery(make_rule("drift", make_schedule(), webhook=running.base_url))
        results = [elsewhere(deliver_due_alerts) for _ in range(4)]
        assert sum(result.result() for result in results) == 3
        assert len(running.seen) == 3
