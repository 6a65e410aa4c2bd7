"""Confirmation by a person before many paid requests are sent."""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from toolbench.evals.prices import find_price, read_price
from toolbench.lab.models import Provider

FREE_KINDS = (Provider.Kind.LOCAL, Provider.Kind.SIMULATED)
_PRIVATE_SUFFIXES = (".localhost", ".local", ".lan", ".internal", ".home.arpa")


class ConfirmationNeededError(Exception):
    """More paid requests may be sent than are sent without confirmation.

    Attributes:
        paid_requests: the most requests, by the provider's name.
    """

    def __init__(self, paid_requests: Mapping[str, int]) -> None:
        self.paid_requests = dict(paid_requests)
        spent = ", ".join(f"up to {count:,} requests to {name}" for name, count in self.paid_requests.items())
        super().__init__(f"This may send {spent}. Confirm that it may be paid for.")

    @property
    def requests(self) -> int:
        """The most paid requests of all providers."""
        return sum(self.paid_requests.values())


def may_cost_money(provider: Provider, model_name: str, price: Mapping[str, Any]) -> bool:
    """Return whether requests to a model may cost money.

    A model of a local or simulated provider is free. One at an address of this machine or of a private network is free
    unless it has a price above 0: `price`, which a person set, or else the list price.
    """
    if provider.kind in FREE_KINDS:
        return False
    if not is_private_address(provider.base_url):
        return True
    found = read_price(price, provider.template, model_name) or find_price(provider.template, model_name)
    return found is not None and (found.input > 0 or found.output > 0)


def is_private_address(url: str) -> bool:
    """Return whether an address is on this machine or in a private network, as its text shows; no name is resolved."""
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return False
    try:
        return ip_address(host).is_private
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(_PRIVATE_SUFFIXES))


def check_confirmed(paid: Mapping[str, int], agreed: int) -> None:
    """Check that these paid requests, by the provider's name, need no confirmation or were agreed to.

    Raises:
        ConfirmationNeededError: they need one, and in all they are more than the `agreed` number.
    """
    if needs_confirmation(paid) and sum(paid.values()) > agreed:
        raise ConfirmationNeededError(paid)


def needs_confirmation(paid: Mapping[str, int]) -> bool:
    """Return whether a provider may get more requests than are sent without confirmation.

    `paid` has the most paid requests by the provider's name.
    """
    return any(count > settings.CONFIRM_ABOVE_REQUESTS for count in paid.values())
