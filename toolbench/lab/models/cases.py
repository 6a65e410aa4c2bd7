"""Cases of one's own and cases that were brought in: sets, cases, and every version a case has had."""

from django.db import models


class CaseSet(models.Model):
    """Cases that belong together. A set is private unless its cases are published anyway: what is private stays out of
    exports and bundles by default."""

    class Kind(models.TextChoices):
        OWN = "own", "own"
        BFCL = "bfcl", "BFCL"

    name = models.CharField(max_length=80, unique=True)
    kind = models.CharField(max_length=8, choices=Kind, default=Kind.OWN)
    public = models.BooleanField(default=False)
    source = models.CharField(max_length=200, blank=True)  # of what was brought in, with its version
    licence = models.CharField(max_length=80, blank=True)
    link = models.URLField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Case(models.Model):
    """`slug` is the scenario's name in runs and trials. A deleted case is hidden; its versions stay as long as trials
    name them."""

    set = models.ForeignKey(CaseSet, on_delete=models.CASCADE, related_name="cases")
    slug = models.SlugField(max_length=60, unique=True)
    title = models.CharField(max_length=120)
    current = models.PositiveSmallIntegerField(default=1)  # the newest version's number
    from_trial = models.ForeignKey("Trial", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["set_id", "id"]

    def __str__(self) -> str:
        return self.title


class CaseVersion(models.Model):
    """What a case said at one time; never changed. `definition` is JSON as text: the order of keys is part of what is
    sent, and `jsonb` does not keep it."""

    case = models.ForeignKey(Case, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveSmallIntegerField()
    definition = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["case_id", "-number"]
        constraints = [models.UniqueConstraint(fields=["case", "number"], name="one_version_of_a_number")]

    def __str__(self) -> str:
        return f"{self.case.slug} version {self.number}"
