"""Actions for the audit list when a provider and its secrets are saved."""

from toolbench.lab.accounts.audit import Action
from toolbench.lab.endpoints.connect import ConnectionSettings
from toolbench.lab.endpoints.network import list_stored_secrets
from toolbench.lab.models import Provider


def list_save_actions(settings: ConnectionSettings, before: Provider | None, after: Provider) -> list[Action]:
    """Return the actions of a save: the provider is added or changed, a secret is entered, a stored one is deleted.

    Secrets are keys, logins of proxies, private keys and headers, since any header may be secret.

    Args:
        settings: what the user entered.
        before: the provider before the change; None for a new one.
        after: the saved provider.
    """
    actions = [Action.ADDED if before is None else Action.CHANGED]
    if settings.key or settings.headers or settings.network.has_secret:
        actions.append(Action.KEY_ENTERED)
    if before is not None and _list_secrets(before) - _list_secrets(after):
        actions.append(Action.KEY_REMOVED)
    return actions


def _list_secrets(provider: Provider) -> set[str]:
    """Return the names of the provider's stored secrets; the names of headers in lower case."""
    headers = {f"header {name.lower()}" for name in provider.header_names}
    return headers | list_stored_secrets(provider) | ({"key"} if provider.key_encrypted is not None else set())
