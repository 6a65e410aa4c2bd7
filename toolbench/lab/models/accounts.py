"""Tables of sign-in links, API tokens, share links, launch keys and the audit log of the accounts."""

from django.conf import settings
from django.db import models


class SignInLink(models.Model):
    """A sign-in link of an account. It works once, until `expires_at`. Only a hash of its token is stored.

    Attributes:
        used_at: None while it has not been used.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sign_in_links")
    token_hash = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"link of {self.created_at:%Y-%m-%d %H:%M}"


class AuditEntry(models.Model):
    """One action of a user, or of Toolbench without a user.

    Attributes:
        username: the account's name at that time, which stays when the account is deleted; "" without a user.
        subject: the name of the object that the action changed, as pages show it; never a secret.
        url: the page of the subject; "" if it has none.
    """

    class Action(models.TextChoices):
        """Kind of the action."""

        LAUNCHED = "launched", "launched"
        CHANGED = "changed", "changed"
        ADDED = "added", "added"
        DELETED = "deleted", "deleted"
        IMPORTED = "imported", "imported"
        KEY_ENTERED = "key_entered", "entered a key for"
        KEY_REMOVED = "key_removed", "removed a key of"
        INVITED = "invited", "invited"
        REVOKED = "revoked", "revoked"

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    username = models.CharField(max_length=150)
    action = models.CharField(max_length=20, choices=Action.choices)
    subject = models.CharField(max_length=300)
    url = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ("-at", "-pk")
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.username} {self.get_action_display()} {self.subject}"


class ApiToken(models.Model):
    """An API token of an account. Only a hash of its secret is stored.

    Attributes:
        prefix: the beginning of the secret, shown so that users recognise the token.
        scopes: names of the groups of operations that it may use (lab/accounts/tokens.py).
        expires_at: None for a token that stays valid until it is revoked.
        last_used_at: updated at most once a minute; None before the first use.
        revoked_at: None while it is not revoked.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=60)
    prefix = models.CharField(max_length=12)
    secret_hash = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-pk",)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class LaunchKey(models.Model):
    """An idempotency key of a request that launches a run or adds trials.

    The same key and body lead to the same run or test case.

    Attributes:
        body_hash: SHA-256 of the request body; a later request with this key must have the same one.
        run: the launched run, or the run with the added trials; None within the transaction of the request, and if the
            request only saved a test case.
        case: the test case that the request saved; None for other requests.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    body_hash = models.CharField(max_length=64)
    run = models.ForeignKey("Run", null=True, on_delete=models.CASCADE, related_name="launch_keys")
    case = models.ForeignKey("Case", null=True, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="one_run_per_launch_key")]

    def __str__(self) -> str:
        return self.key


class ShareLink(models.Model):
    """A link to one page that can be read without an account.

    Its URL is signed. The page can be read until `expires_at` or `revoked_at`.

    Attributes:
        kind: the kind of page.
        target: primary key of a run or trial; None for a comparison.
        query: query string of a comparison; "" otherwise.
        revoked_at: None while it is not revoked.
    """

    class Kind(models.TextChoices):
        """Kind of the shared page."""

        RUN = "run", "run"
        COMPARISON = "comparison", "comparison"
        TRIAL = "trial", "trial"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="share_links")
    kind = models.CharField(max_length=12, choices=Kind)
    target = models.BigIntegerField(null=True, blank=True)
    query = models.TextField(blank=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-pk",)

    def __str__(self) -> str:
        return f"link to {self.kind} {self.target or ''}".strip()
