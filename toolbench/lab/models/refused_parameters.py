"""Table of the optional parameters that endpoints refused during runs."""

from django.db import models


class RefusedParameter(models.Model):
    """An optional parameter that a model's endpoint refused in a run.

    The endpoint accepted the request without the parameter. Trials of the run that start later omit it. Later runs omit
    it only if a user has adopted the omission as a setting of the model.

    Attributes:
        model_name: the name of the model in the run's configuration.
        name: the name of the parameter in engine/data/optional_parameters.json.
        why: the beginning of the endpoint's error message.
        trial: the trial whose request was refused; None if it was deleted.
    """

    run = models.ForeignKey("Run", on_delete=models.CASCADE, related_name="+")
    provider = models.ForeignKey("Provider", on_delete=models.CASCADE, related_name="+")
    model_name = models.CharField(max_length=200)
    name = models.CharField(max_length=60)
    why = models.TextField()
    trial = models.ForeignKey("Trial", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["run", "provider", "model_name", "name"], name="one_refusal_per_run")
        ]
        indexes = [models.Index(fields=["provider", "model_name"], name="refused_by_model")]

    def __str__(self) -> str:
        return f"{self.name} refused by {self.model_name}"
