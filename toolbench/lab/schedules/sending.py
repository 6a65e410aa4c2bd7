"""Sending of a message to the webhook or the e-mail address of an alert rule."""

import asyncio
from smtplib import SMTPException

import httpx
from cryptography.fernet import InvalidToken
from django.conf import settings
from django.core.mail import send_mail

from toolbench.engine.types import JsonObject
from toolbench.lab.credentials.keys import decrypt
from toolbench.lab.models import AlertDelivery, AlertRule

SEND_SECONDS = 5.0
_SMTP_BACKEND = "django.core.mail.backends.smtp.EmailBackend"


class SendError(Exception):
    """Raised if a message was not sent, or if no answer confirms that it was sent.

    The message gives the reason, without the address.
    """


def send_message(rule: AlertRule, channel: str, message: JsonObject) -> None:
    """Send a message on one channel of a rule.

    Args:
        rule: the rule with the address.
        channel: a value of `AlertDelivery.Channel`.
        message: JSON with at least the strings `id`, `title`, `text` and `url`.

    Raises:
        SendError: the message was not sent, or no answer confirms that it was.
    """
    if channel == AlertDelivery.Channel.EMAIL:
        _send_email(rule.email, message)
    else:
        _send_webhook(rule, message)


def _send_webhook(rule: AlertRule, message: JsonObject) -> None:
    try:
        url = decrypt(rule.webhook_encrypted or b"")
    except (InvalidToken, FileNotFoundError, ValueError) as error:
        raise SendError("The stored address cannot be decrypted. Enter the webhook again.") from error
    try:
        status = asyncio.run(asyncio.wait_for(_post(url, message), SEND_SECONDS))
    except (TimeoutError, httpx.TimeoutException) as error:
        raise SendError(f"The webhook did not answer within {SEND_SECONDS:g} s.") from error
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        raise SendError(f"The webhook could not be reached: {type(error).__name__}.") from error
    if not 200 <= status < 300:
        raise SendError(f"The webhook answered with status {status}.")


async def _post(url: str, message: JsonObject) -> int:
    """Post the message and return the status of the answer.

    The body is not read and no redirect is followed.
    """
    headers = {"idempotency-key": str(message["id"])}
    async with (
        httpx.AsyncClient(timeout=SEND_SECONDS, trust_env=False) as client,
        client.stream("POST", url, json=message, headers=headers) as answer,
    ):
        return answer.status_code


def _send_email(address: str, message: JsonObject) -> None:
    if settings.EMAIL_BACKEND == _SMTP_BACKEND and not settings.EMAIL_HOST:
        raise SendError("No mail server is configured. Set EMAIL_HOST and restart Toolbench.")
    subject = " ".join(f"Toolbench: {message['title']}".split())
    try:
        send_mail(subject, f"{message['text']}\n\n{message['url']}\n", None, [address])
    except ValueError as error:
        raise SendError("The e-mail address is not valid. Add the rule again with a valid one.") from error
    except (SMTPException, OSError) as error:
        raise SendError(f"The mail server did not accept the message: {type(error).__name__}.") from error
