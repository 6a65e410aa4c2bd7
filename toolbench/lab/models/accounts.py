"""Tables of the people who use the site. Their accounts are Django's."""

from django.conf import settings
from django.db import models


class SignInLink(models.Model):
    """A sign-in link of an account, valid once and for some hours. Only a hash of its token is stored."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sign_in_links")
    token_hash = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"link of {self.created_at:%Y-%m-%d %H:%M}"


class AuditEntry(models.Model):
    """One thing that a person did on the pages.

    Attributes:
        username: the account's name at that time; it stays when the account is deleted.
        subject: what was launched, changed or deleted, as a reader knows it; never a secret.
        url: the page of the subject; "" if it is gone.
    """

    class Action(models.TextChoices):
        LAUNCHED = "launched", "launched"
        CHANGED = "changed", "changed"
        ADDED = "added", "added"
        DELETED = "deleted", "deleted"
        IMPORTED = "imported", "imported"
        KEY_ENTERED = "key_entered", "entered a key for"
        KEY_REMOVED = "key_removed", "removed a key of"
        INVITED = "invited", "invited"

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
