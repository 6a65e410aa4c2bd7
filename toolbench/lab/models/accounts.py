"""Tables of accounts: sign-in links, API tokens, idempotency keys, share links and the audit log."""

from django.conf import settings
from django.db import models


class SignInLink(models.Model):
    """A sign-in link of an account. It works once, until `expires_at`.

    Attributes:
        token_hash: SHA-256 of the token in the link; the token is not stored.
        used_at: None while the link has not been used.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sign_in_links")
    token_hash = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"link of {self.created_at:%Y-%m-%d %H:%M}"


class AuditEntry(models.Model):
    """An action of a user, or of Toolbench itself, in the audit log.

    Attributes:
        username: a copy of the account's name at that time, so that it stays when the account is deleted; "" if no user
            acted.
        subject: the name of the object that the action changed, as pages show it; never a secret.
        url: the path of the object's page; "" if it has none.
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
    """An API token of an account.

    Attributes:
        name: the name that the user gave it.
        prefix: the first characters of the secret, shown so that users recognise the token.
        secret_hash: SHA-256 of the secret, which is not stored.
        scopes: values of Scope (lab/accounts/tokens.py): the kinds of requests that the token may send.
        expires_at: None if the token is valid until it is revoked.
        last_used_at: written at most once a minute; None before the first use.
        revoked_at: None while the token is not revoked.
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

    A repeated request with this key gets the same run or test case instead of a new one.

    Attributes:
        body_hash: SHA-256 of the request body. A later request with this key must have the same body.
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

    Its URL is signed. It works until `expires_at`, or until it is revoked.

    Attributes:
        target: primary key of the run or trial; None for a comparison.
        query: query string of the comparison; "" for a run or trial.
        revoked_at: None while the link is not revoked.
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
