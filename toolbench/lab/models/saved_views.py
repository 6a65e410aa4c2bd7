"""Addresses of pages of results that a person keeps under a name."""

from django.conf import settings
from django.db import models


class SavedView(models.Model):
    """A page of results with its scope.

    Attributes:
        address: path and query string.
        shared: whether everybody sees it; only its owner and owners of the site change it.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views")
    name = models.CharField(max_length=80)
    address = models.CharField(max_length=2000)
    shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name", "pk")
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="one_view_per_name")]

    def __str__(self) -> str:
        return self.name
