"""Table of saved views: pages of results that users keep under a name."""

from django.conf import settings
from django.db import models


class SavedView(models.Model):
    """The address of a page of results that a user saved under a name.

    Attributes:
        address: path and query string.
        owner: the user who saved the view, and the only one who can change it.
        shared: whether other users see the view. Users with the role `owner` can delete a shared view.
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
