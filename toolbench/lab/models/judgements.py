"""Tables of verdicts on trials, and of the replay queue: what-ifs, re-judgings and imports for workers."""

from typing import Self
from urllib.parse import parse_qs

from django.conf import settings
from django.db import models


class JudgementQuerySet(models.QuerySet["Judgement"]):
    """Query set of verdicts, with a filter for those on the last execution of their trial."""

    def filter_last_executions(self) -> Self:
        """Return the verdicts on the last execution of each trial.

        A user can retry a trial after its verdict; the verdict was then made before the last execution ended. An
        imported trial, which may have ended at an unknown time, has only one execution.
        """
        of_last_execution = models.Q(judged_at__gte=models.F("trial__finished_at"))
        return self.filter(of_last_execution | models.Q(trial__finished_at=None, trial__state="done"))


class Judgement(models.Model):
    """A verdict on a trial, with the versions of the rules by which it was made.

    Only re-judged trials have rows: one for each verdict, including the first. The columns of a trial always hold its
    current verdict.

    Attributes:
        current: whether it is the current verdict of the trial.
        columns: the VERDICT_COLUMNS of lab/replays/stored_trials.py, with their values by name.
    """

    trial = models.ForeignKey("Trial", on_delete=models.CASCADE, related_name="judgements")
    scenario_version = models.PositiveSmallIntegerField()
    judging_version = models.PositiveSmallIntegerField()
    current = models.BooleanField(default=True)
    outcome = models.CharField(max_length=10)
    columns = models.JSONField(default=dict)
    judged_at = models.DateTimeField()

    objects = JudgementQuerySet.as_manager()

    class Meta:
        ordering = ["trial_id", "judged_at", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["trial", "scenario_version", "judging_version"], name="one_judgement_per_version"
            ),
            models.UniqueConstraint(fields=["trial"], name="one_current_judgement", condition=models.Q(current=True)),
        ]

    def __str__(self) -> str:
        return f"{self.outcome} by scenario {self.scenario_version}, judging {self.judging_version}"


class HumanVerdict(models.Model):
    """A user's verdict on one execution of a trial.

    It does not replace the judge's verdict and changes no count. A new human verdict becomes the current one of the
    trial; older ones are kept.

    Attributes:
        person: the user; None if the account was deleted.
        username: a copy of the account's name at that time, so that it stays when the account is deleted.
        at: when the user gave the verdict.
    """

    class Outcome(models.TextChoices):
        """Outcome that the user chose."""

        PASS = "pass", "pass"
        FAIL = "fail", "fail"

    trial = models.ForeignKey("Trial", on_delete=models.CASCADE, related_name="human_verdicts")
    execution = models.PositiveIntegerField()
    person = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    username = models.CharField(max_length=150)
    verdict = models.CharField(max_length=4, choices=Outcome)
    reason = models.TextField()
    current = models.BooleanField(default=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["trial"], name="one_current_human_verdict", condition=models.Q(current=True)
            )
        ]

    def __str__(self) -> str:
        return f"{self.verdict} by {self.username}"


class Replay(models.Model):
    """Job of a worker: a replay with other settings (what-if), a re-judging or an import.

    There is at most one row for each kind, scope and query.

    Attributes:
        query: URL query string: the settings of a what-if, or `file`, `host` and `name` of an import; "" for a
            re-judging.
        settings_digest: for a what-if, the `compute_dependency_digest` (lab/replays/queue.py) when it was requested.
            It covers what the result depends on beside `query` and the trials, such as the patches of presets. "" for
            other jobs.
        done: number of trials that have been processed.
        total: number of trials to process.
        counts: for a what-if, a list for each kind of change: outcome before, outcome after, whether answered success
            omits the trial before, whether it does after, number of such trials. For an import, a list with the id of
            the run. Empty until the job is done.
        listed: for a what-if, the first MAX_CHANGES_LISTED trials (lab/replays/queue.py) whose outcome has changed or
            is unknown, each with the fields of TrialChange.
        assumed: for a what-if, names of fields in which requests differed from the stored ones. The answers are assumed
            not to depend on these fields.
        requests_before: number of requests that the run had reserved when the replay was requested.
        refused: error message; "" without an error.
        asked_at: when the job was requested.
    """

    IMPORT = "import"  # scope_id is the owner's id, 0 for none
    REJUDGE = "rejudge"  # scope_id is the id of a run

    class State(models.TextChoices):
        """State of the job."""

        QUEUED = "queued", "waiting"
        RUNNING = "running", "running"
        DONE = "done", "done"

    kind = models.CharField(max_length=8)  # trial, cell or run for a what-if; IMPORT or REJUDGE
    scope_id = models.BigIntegerField()
    query = models.TextField(blank=True)
    settings_digest = models.CharField(max_length=64, blank=True)
    state = models.CharField(max_length=8, choices=State, default=State.QUEUED)
    lease = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)  # how often a worker claimed it
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    counts = models.JSONField(default=list)
    listed = models.JSONField(default=list)
    assumed = models.JSONField(default=list)
    requests_before = models.PositiveIntegerField(default=0)
    refused = models.TextField(blank=True)
    asked_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["kind", "scope_id", "query"], name="one_replay_per_address")]

    def __str__(self) -> str:
        if self.kind == self.IMPORT:
            return f"import of {self.file_name}"
        if self.kind == self.REJUDGE:
            return f"re-judging of run {self.scope_id}"
        return f"replay of {self.kind} {self.scope_id}: {self.query or 'original settings'}"

    @property
    def file_host(self) -> str:
        """The host that has the imported file; "" if it is unknown."""
        return parse_qs(self.query).get("host", [""])[0]

    @property
    def file_name(self) -> str:
        """The name of the imported file, as the browser sent it; "" if it sent none."""
        return parse_qs(self.query).get("name", [""])[0]
