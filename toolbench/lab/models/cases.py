"""Tables of test cases: sets, test cases, and all versions of each test case."""

from django.db import models


class CaseSet(models.Model):
    """A set of test cases.

    Attributes:
        public: False for a private set, which exports and bundles leave out unless the user includes it.
        source: where imported cases come from, with the version; "" for others.
        link: URL of the source.
    """

    class Kind(models.TextChoices):
        """Origin of the cases."""

        OWN = "own", "own"
        BFCL = "bfcl", "BFCL"
        DRAFT = "draft", "draft"  # conversations of the playground, which no list of cases offers

    name = models.CharField(max_length=80, unique=True)
    kind = models.CharField(max_length=8, choices=Kind, default=Kind.OWN)
    public = models.BooleanField(default=False)
    source = models.CharField(max_length=200, blank=True)
    licence = models.CharField(max_length=80, blank=True)
    link = models.URLField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Case(models.Model):
    """A test case. A deleted case is hidden; its versions stay, since trials refer to them.

    Attributes:
        slug: the slug of the scenario in runs and trials.
        current: the newest version, a `CaseVersion.number`.
        from_trial: the trial from which the case was made; None if there is none.
        deleted_at: None while the case is not deleted.
    """

    set = models.ForeignKey(CaseSet, on_delete=models.CASCADE, related_name="cases")
    slug = models.SlugField(max_length=60, unique=True)
    title = models.CharField(max_length=120)
    current = models.PositiveSmallIntegerField(default=1)
    from_trial = models.ForeignKey("Trial", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["set_id", "id"]

    def __str__(self) -> str:
        return self.title


class CaseVersion(models.Model):
    """A version of a test case. It never changes.

    Attributes:
        number: counts from 1 within the case.
        definition: JSON as text. Requests send its keys in their order, which a column of type `jsonb` would not keep.
    """

    case = models.ForeignKey(Case, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveSmallIntegerField()
    definition = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["case_id", "-number"]
        constraints = [models.UniqueConstraint(fields=["case", "number"], name="one_version_of_a_number")]

    def __str__(self) -> str:
        return f"{self.case.slug} version {self.number}"
