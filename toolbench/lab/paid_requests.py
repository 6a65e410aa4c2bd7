"""Paid requests: what a model costs, which requests may cost money, and when a user has to confirm them."""

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from toolbench.evals.prices import Price, find_price, read_price
from toolbench.lab.models import Provider

FREE_KINDS = (Provider.Kind.LOCAL, Provider.Kind.SIMULATED)
# Origin of the price 0 of providers at a private address, and of local and simulated providers.
PRIVATE_ADDRESS_ORIGIN = "no price set, and its address is on this machine or network"
_PRIVATE_SUFFIXES = (".localhost", ".local", ".lan", ".internal", ".home.arpa")


class PaidRequestsUnconfirmedError(Exception):
    """Raised if paid requests need confirmation, and more may be sent than a user has confirmed.

    Attributes:
        paid_requests: how many paid requests may be sent at most, by provider name.
    """

    def __init__(self, paid_requests: Mapping[str, int]) -> None:
        self.paid_requests = dict(paid_requests)
        counts = ", ".join(
            f"up to {count:,} request{'' if count == 1 else 's'} to {name}"
            for name, count in self.paid_requests.items()
        )
        super().__init__(f"This may send {counts}. Confirm that they may be paid for.")

    @property
    def max_paid_requests(self) -> int:
        """The number of paid requests that may be sent at most, over all providers."""
        return sum(self.paid_requests.values())


def may_cost_money(provider: Provider, model_name: str, price: Mapping[str, Any]) -> bool:
    """Return whether requests to a model may cost money.

    Local and simulated providers are free. At a private address, a model costs money only if its price is above 0. At
    any other address, it may always cost money.

    Args:
        provider: the provider of the model.
        model_name: the name that requests send.
        price: the price that a user set for the model; {} if there is none, so that the list price counts.
    """
    if provider.kind in FREE_KINDS:
        return False
    if not is_private_address(provider.base_url):
        return True
    known_price = find_model_price(provider, model_name, price)
    return known_price is not None and not known_price.is_zero


def find_model_price(provider: Provider, model_name: str, price: Mapping[str, Any]) -> Price | None:
    """Return the price of a model: the one that a user set, else the list price.

    Without either, local and simulated providers and those at a private address cost nothing.

    Args:
        provider: the provider of the model.
        model_name: the name that requests send.
        price: the price that a user set for the model; {} if there is none.

    Returns:
        The price; None if it is unknown, which happens only at a public address.
    """
    known_price = read_price(price, provider.template, model_name) or find_price(provider.template, model_name)
    if known_price is not None:
        return known_price
    is_free = provider.kind in FREE_KINDS or is_private_address(provider.base_url)
    return Price(provider.template, model_name, 0.0, 0.0, "", PRIVATE_ADDRESS_ORIGIN) if is_free else None


@lru_cache(maxsize=256)
def is_private_address(url: str) -> bool:
    """Return whether the host of a URL is this machine or in a private network.

    No name is looked up. A name counts as private if it has no dot or ends in one of _PRIVATE_SUFFIXES.

    Returns:
        False for a URL that cannot be parsed or has no host.
    """
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return False
    try:
        return ip_address(host).is_private
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(_PRIVATE_SUFFIXES))


def check_confirmed(paid_requests: Mapping[str, int], confirmed_count: int) -> None:
    """Raise PaidRequestsUnconfirmedError if these paid requests need confirmation and exceed the confirmed number.

    Args:
        paid_requests: how many paid requests may be sent at most, by provider name.
        confirmed_count: how many paid requests the user has confirmed, over all providers.

    Raises:
        PaidRequestsUnconfirmedError: confirmation is needed, and more requests may be sent than were confirmed.
    """
    if needs_confirmation(paid_requests) and sum(paid_requests.values()) > confirmed_count:
        raise PaidRequestsUnconfirmedError(paid_requests)


def needs_confirmation(paid_requests: Mapping[str, int]) -> bool:
    """Return whether any provider may get more than `CONFIRM_ABOVE_REQUESTS` of these paid requests.

    Args:
        paid_requests: how many paid requests may be sent at most, by provider name.
    """
    return any(count > settings.CONFIRM_ABOVE_REQUESTS for count in paid_requests.values())
