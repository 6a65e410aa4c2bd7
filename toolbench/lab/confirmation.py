"""Confirmation by a person before many paid requests are sent."""

from collections.abc import Mapping

from django.conf import settings

from toolbench.lab.models import Provider

FREE_KINDS = (Provider.Kind.LOCAL, Provider.Kind.SIMULATED)


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
