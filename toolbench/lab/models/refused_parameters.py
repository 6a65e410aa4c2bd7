"""Parameters that endpoints refuse, as a run has found."""

from django.db import models


class RefusedParameter(models.Model):
    """An optional parameter that a model's endpoint refused in a run, and without which it accepted the request.

    It counts for the rest of that run only. Later runs leave the parameter out once a user has adopted it as a setting
    of the model.
    """

    run = models.ForeignKey("Run", on_delete=models.CASCADE, related_name="+")
    provider = models.ForeignKey("Provider", on_delete=models.CASCADE, related_name="+")
    model_name = models.CharField(max_length=200)  # as the run froze it
    name = models.CharField(max_length=60)  # a row of engine/data/optional_parameters.json
    why = models.TextField()  # the beginning of the refusal
    trial = models.ForeignKey("Trial", null=True, on_delete=models.SET_NULL, related_name="+")  # that learnt it
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["run", "provider", "model_name", "name"], name="one_refusal_per_run")
        ]
        indexes = [models.Index(fields=["provider", "model_name"], name="refused_by_model")]

    def __str__(self) -> str:
        return f"{self.name} refused by {self.model_name}"
