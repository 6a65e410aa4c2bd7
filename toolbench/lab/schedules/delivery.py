"""Delivery of alerts, once on each channel of their rule, with retries after failures."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from toolbench.engine.types import JsonObject
from toolbench.lab.models import Alert, AlertDelivery, AlertRule
from toolbench.lab.schedules.conditions import describe_rule
from toolbench.lab.schedules.sending import SendError, send_message

RULE_WITHOUT_ADDRESS = "The rule has no address. Add a rule with a webhook or an e-mail address to test it."
MAX_ATTEMPTS = 8  # the last attempt is about an hour after the first
# Few, since the scheduler does nothing else while it sends. It waits up to 5 s for a webhook, and up to
# settings.EMAIL_TIMEOUT for each answer of a mail server.
MAX_DELIVERIES_PER_CALL = 3
_FIRST_PAUSE = timedelta(seconds=30)  # after the first failed attempt; each further pause is twice as long
_CLAIM_TIMEOUT = timedelta(minutes=2)  # time after which a delivery that is still being sent counts as lost
_State = AlertDelivery.State


def deliver_due_alerts() -> int:
    """Send up to MAX_DELIVERIES_PER_CALL messages that are due; return how many were sent.

    If a process ended while it sent a message, the delivery becomes unclear. It is repeated only if a user retries it.
    """
    lost = AlertDelivery.objects.filter(state=_State.SENDING, next_attempt_at__lte=timezone.now())
    lost.update(
        state=_State.UNCLEAR, next_attempt_at=None, last_error="The process ended while the message was being sent."
    )
    sent_count = 0
    for _ in range(MAX_DELIVERIES_PER_CALL):
        delivery = _claim_delivery()
        if delivery is None:
            break
        sent_count += _send_delivery(delivery)
    return sent_count


def retry_delivery(delivery_id: int) -> bool:
    """Queue a delivery again; return False without a change if it is neither failed nor unclear."""
    ended_deliveries = AlertDelivery.objects.filter(pk=delivery_id, state__in=[_State.FAILED, _State.UNCLEAR])
    return ended_deliveries.update(state=_State.PENDING, attempts=0, next_attempt_at=timezone.now()) == 1


def send_test(rule: AlertRule) -> list[str]:
    """Send a test message on every channel of the rule; return one sentence per channel about the result."""
    message = {
        "id": f"test-{rule.pk}-{timezone.now().timestamp():.0f}",
        "kind": rule.kind,
        "title": f"Test of “{rule}”",
        "text": f"This is a test. The rule fires when {describe_rule(rule)}.",
        "url": build_rule_url(rule),
        "test": True,
    }
    sentences = []
    for channel in list_channels(rule):
        name = AlertDelivery.Channel(channel).label.capitalize()
        try:
            send_message(rule, channel, message)
            sentences.append(f"{name}: the test was sent.")
        except SendError as error:
            sentences.append(f"{name}: {error}")
    return sentences


def list_channels(rule: AlertRule) -> list[str]:
    """Return the channels, values of AlertDelivery.Channel, for which the rule has an address."""
    webhook = [AlertDelivery.Channel.WEBHOOK.value] if rule.webhook_encrypted is not None else []
    return webhook + ([AlertDelivery.Channel.EMAIL.value] if rule.email else [])


def build_rule_url(rule: AlertRule) -> str:
    """Return the URL of the page that shows the rule."""
    path = reverse("schedule", args=[rule.schedule_id]) if rule.schedule_id else reverse("schedules")
    return f"{settings.BASE_URL}{path}#rules"


def build_message(alert: Alert, delivery_id: int) -> JsonObject:
    """Return the message about an alert, the JSON that a webhook receives. It contains no secret."""
    schedule = alert.rule.schedule
    subject = schedule.name if schedule else str(alert.run)
    return {
        "id": f"alert-{alert.pk}-{delivery_id}",
        "kind": alert.rule.kind,
        "title": f"{subject}: {alert.rule}",
        "text": f"{subject}, run {alert.run_id}: {alert.sentence}",
        "url": f"{settings.BASE_URL}{build_alert_path(alert)}",
        "run": alert.run_id,
        "at": alert.created_at.isoformat(),
        "test": False,
    }


def build_alert_path(alert: Alert) -> str:
    """Return the path of the page about the alert.

    This is the trend page of the series, or the page of the run if the alert has no series or the rule no schedule.
    """
    if alert.series and alert.rule.schedule_id:
        return f"{reverse('trend')}?schedule={alert.rule.schedule_id}#s-{alert.series}"
    return reverse("run", args=[alert.run_id])


def _claim_delivery() -> AlertDelivery | None:
    """Claim the delivery that has been due for the longest time; return None if none is due."""
    with transaction.atomic():
        now = timezone.now()
        due = AlertDelivery.objects.select_for_update(skip_locked=True, of=("self",))
        due = due.filter(state=_State.PENDING, next_attempt_at__lte=now).order_by("next_attempt_at", "pk")
        delivery = due.select_related("alert__run", "alert__rule__schedule").first()
        if delivery is not None:
            delivery.state, delivery.attempts = _State.SENDING, delivery.attempts + 1
            delivery.next_attempt_at = now + _CLAIM_TIMEOUT
            delivery.save(update_fields=["state", "attempts", "next_attempt_at"])
    return delivery


def _send_delivery(delivery: AlertDelivery) -> bool:
    """Send a claimed delivery and store the result; return whether it was sent."""
    try:
        send_message(delivery.alert.rule, delivery.channel, build_message(delivery.alert, delivery.pk))
    except SendError as error:
        is_last_attempt = delivery.attempts >= MAX_ATTEMPTS
        pause = _FIRST_PAUSE * 2 ** (delivery.attempts - 1)
        _finish_delivery(
            delivery,
            state=_State.FAILED if is_last_attempt else _State.PENDING,
            next_attempt_at=None if is_last_attempt else timezone.now() + pause,
            last_error=str(error)[:300],
        )
        return False
    _finish_delivery(delivery, state=_State.SENT, next_attempt_at=None, sent_at=timezone.now(), last_error="")
    return True


def _finish_delivery(delivery: AlertDelivery, **columns: Any) -> None:
    AlertDelivery.objects.filter(pk=delivery.pk, state=_State.SENDING).update(**columns)
