import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
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
UNREACHABLE_URL = "http://127.0.0.1:9/hook/s3cr3t-token"


class Hook:
    """A webhook whose answers a test chooses."""

    def __init__(self) -> None:
        self.status = 200

    def __call__(self, request: ReceivedRequest) -> ScriptedReply:
        return ScriptedReply(self.status, {"content-type": "application/json"}, b"{}")


@pytest.fixture
def hook() -> Hook:
    return Hook()


@pytest.fixture
def server(hook: Hook) -> Iterator[ScriptedServer]:
    with ScriptedServer(hook) as server:
        yield server


def make_delivery(rule: AlertRule, channel: str = "webhook") -> AlertDelivery:
    return make_alert_delivery(make_run(schedule=rule.schedule), rule, channel)


def make_due() -> None:
    AlertDelivery.objects.update(next_attempt_at=timezone.now() - timedelta(seconds=1))


def test_deliver_due_alerts_sends_the_webhook_once(server: ScriptedServer) -> None:
    rule = make_rule("drift", make_schedule(), webhook=f"{server.base_url}/hook")
    delivery = make_delivery(rule)
    assert (deliver_due_alerts(), deliver_due_alerts()) == (1, 0)
    (request,) = server.seen
    body = json.loads(request.body)
    assert (body["title"], body["kind"], body["test"]) == ("Core: Success drops", "drift", False)
    assert body["text"] == f"Core, run {delivery.alert.run_id}: Success dropped."
    assert body["url"].endswith(f"/runs/{delivery.alert.run_id}/")
    assert request.headers["idempotency-key"] == body["id"]
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts, delivery.last_error) == ("sent", 1, "")


def test_deliver_due_alerts_retries_a_failing_webhook_after_a_pause(server: ScriptedServer, hook: Hook) -> None:
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
    first, second = (json.loads(request.body)["id"] for request in server.seen)
    assert first == second


def test_deliver_due_alerts_gives_up_until_a_user_retries() -> None:
    delivery = make_delivery(make_rule("drift", make_schedule(), webhook=UNREACHABLE_URL))
    for _ in range(MAX_ATTEMPTS + 2):
        make_due()
        deliver_due_alerts()
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("failed", MAX_ATTEMPTS)
    assert delivery.last_error == "The webhook could not be reached: ConnectError."
    assert retry_delivery(delivery.pk)
    assert not retry_delivery(delivery.pk)


def test_deliver_due_alerts_does_not_repeat_an_interrupted_message(server: ScriptedServer) -> None:
    delivery = make_delivery(make_rule("drift", make_schedule(), webhook=server.base_url))
    AlertDelivery.objects.update(state="sending", attempts=1, next_attempt_at=timezone.now())
    assert deliver_due_alerts() == 0
    delivery.refresh_from_db()
    assert delivery.state == "unclear"
    assert server.seen == []


def test_deliver_due_alerts_limits_the_time_of_a_webhook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolbench.lab.schedules.sending.SEND_SECONDS", 0.2)
    with ScriptedServer(lambda request: ScriptedReply(ending=ConnectionEnd.HANG, declared=9, delay=5)) as server:
        delivery = make_delivery(make_rule("drift", make_schedule(), webhook=server.base_url))
        deliver_due_alerts()
    delivery.refresh_from_db()
    assert delivery.last_error == "The webhook did not answer within 0.2 s."


def test_deliver_due_alerts_names_an_invalid_email_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError('Invalid address "a,b@example.test"')

    monkeypatch.setattr("toolbench.lab.schedules.sending.send_mail", refuse)
    delivery = make_delivery(make_rule("drift", make_schedule(), email="a@example.test"), "email")
    assert deliver_due_alerts() == 0
    delivery.refresh_from_db()
    assert (delivery.state, delivery.last_error[:33]) == ("pending", "The e-mail address is not valid. ")


def test_deliver_due_alerts_does_not_follow_a_redirect() -> None:
    with ScriptedServer(lambda request: ScriptedReply(302, {"location": "/elsewhere"})) as server:
        delivery = make_delivery(make_rule("drift", make_schedule(), webhook=server.base_url))
        deliver_due_alerts()
        assert len(server.seen) == 1
    delivery.refresh_from_db()
    assert delivery.last_error == "The webhook answered with status 302."


def test_deliver_due_alerts_stores_no_webhook_url() -> None:
    make_delivery(make_rule("drift", make_schedule(), webhook=UNREACHABLE_URL))
    deliver_due_alerts()
    stored = [str(value) for row in AlertDelivery.objects.values() for value in row.values()]
    stored += [str(value) for row in AlertRule.objects.values() for value in row.values()]
    assert not any("s3cr3t-token" in value for value in stored)


def test_deliver_due_alerts_names_an_undecryptable_webhook() -> None:
    rule = make_rule("drift", make_schedule(), webhook=UNREACHABLE_URL)
    AlertRule.objects.update(webhook_encrypted=b"not encrypted")
    delivery = make_delivery(rule)
    deliver_due_alerts()
    delivery.refresh_from_db()
    assert delivery.last_error == "The stored address cannot be decrypted. Enter the webhook again."


def test_deliver_due_alerts_sends_email() -> None:
    make_delivery(make_rule("drift", make_schedule(), email="a@example.test"), "email")
    assert deliver_due_alerts() == 1
    (message,) = mail.outbox
    assert (message.to, message.subject) == (["a@example.test"], "Toolbench: Core: Success drops")
    assert "Success dropped." in message.body


def test_deliver_due_alerts_names_missing_or_failed_mail_server(settings: Settings) -> None:
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


def test_send_test_reports_the_result_of_each_channel(server: ScriptedServer, hook: Hook) -> None:
    rule = make_rule("below_target", make_schedule(), 90, webhook=server.base_url, email="a@example.test")
    assert send_test(rule) == ["Webhook: the test was sent.", "E-mail: the test was sent."]
    assert json.loads(server.seen[0].body)["test"] is True
    hook.status = 500
    assert send_test(rule)[0] == "Webhook: The webhook answered with status 500."
    assert not Alert.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_deliver_due_alerts_by_several_schedulers_sends_once(elsewhere: RunInThread) -> None:
    def answer_late(request: ReceivedRequest) -> Any:
        reply = json_reply({})
        return ScriptedReply(reply.status, reply.headers, reply.body, delay=0.2)

    with ScriptedServer(answer_late) as server:
        for _ in range(3):
            make_delivery(make_rule("drift", make_schedule(), webhook=server.base_url))
        results = [elsewhere(deliver_due_alerts) for _ in range(4)]
        assert sum(result.result() for result in results) == 3
        assert len(server.seen) == 3


def test_send_test_with_invalid_key_file_names_the_webhook(settings: Settings, tmp_path: Path) -> None:
    rule = make_rule("drift", make_schedule(), webhook=UNREACHABLE_URL)
    settings.KEY_FILE = tmp_path / "key"
    settings.KEY_FILE.write_text("no key")
    (sentence,) = send_test(rule)
    assert sentence == "Webhook: The stored address cannot be decrypted. Enter the webhook again."
