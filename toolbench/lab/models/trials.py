"""Tables of trials, their steps, the bodies of the steps and the texts for search."""

from django.contrib.postgres.indexes import GinIndex, OpClass
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import Func
from django.db.models.functions import Cast

from toolbench.lab.models.counters import TRIAL_COUNTERS, TrialColumns, add_count_columns

# Trials with an answer, as `answered` in metrics/sql/cell_trials.sql.
ANSWERED = models.Q(outcome="pass") | (models.Q(outcome="fail") & ~models.Q(end="DEADLINE_EXCEEDED"))
NOT_PASSED = models.Q(outcome__in=["fail", "infra"])  # without trials that were cancelled or are not applicable
# Steps that retry counts read: exchanges that are retries, have no readable answer or have no stored status.
RETRY_RELEVANT_STEP = models.Q(kind="exchange") & (
    models.Q(attempt__gt=1) | models.Q(ok=False) | models.Q(ok=None) | models.Q(status=None)
)
# Trials in which a cause was found. The index `causes_at_any_index` has only these trials, so PostgreSQL uses it only
# for queries with this condition.
HAS_CAUSES = ~models.Q(causes=[])
# `causes` with `[]` for each list index in a JSON path: `$.items[2].id` becomes `$.items[].id`. The index has this
# value, so that a search for a path finds all elements of a list.
CAUSES_AT_ANY_INDEX = Cast(
    Func(
        Cast("causes", models.TextField()),
        models.Value(r"\[[0-9]+\]"),
        models.Value("[]"),
        models.Value("g"),
        function="regexp_replace",
        output_field=models.TextField(),
    ),
    models.JSONField(),
)
# Trials in which valid calls differed from the expected ones.
HAS_WRONG_PATHS = ~models.Q(wrong_paths=[])
# Columns by which lists of trials filter, count and sort. The indexes `listed_trials` and `trials_of_run` have them, so
# most lists read no row of the table, which is about ten times as large.
_LISTED_COLUMNS_OF_RUN = (
    *("config", "scenario", "cause", "state", "outcome", "position", "started_at", "duration_ms"),
    *("turns", "requests", "retries", "input_tokens", "output_tokens", "cost"),
)
LISTED_COLUMNS = ("run", *_LISTED_COLUMNS_OF_RUN)


@add_count_columns(*TRIAL_COUNTERS)
class Trial(models.Model, TrialColumns):
    """One attempt at one instance of a scenario.

    Each write of a worker checks `lease`, so it changes nothing after the lease was lost.
    """

    class State(models.TextChoices):
        """State of the trial."""

        QUEUED = "queued", "queued"
        RUNNING = "running", "running"
        DONE = "done", "done"

    class Outcome(models.TextChoices):
        """Outcome of a trial that has ended."""

        PASS = "pass", "pass"
        FAIL = "fail", "fail"
        INFRA = "infra", "infrastructure"
        NOT_APPLICABLE = "na", "not applicable"
        CANCELLED = "cancelled", "cancelled"

    # Run and cell need no index of their own: the indexes (run, outcome) and (cell, index) begin with them.
    run = models.ForeignKey("Run", on_delete=models.CASCADE, related_name="trials", db_index=False)
    config = models.ForeignKey("RunConfig", on_delete=models.CASCADE, related_name="trials")
    cell = models.ForeignKey("Cell", on_delete=models.CASCADE, related_name="trials", db_index=False)
    provider = models.ForeignKey("Provider", null=True, on_delete=models.SET_NULL, related_name="+")

    # the plan
    index = models.PositiveIntegerField()  # repeat within the cell, from 1
    block = models.PositiveIntegerField()  # number of the block, from 1; a block has at most one trial of each cell
    position = models.PositiveIntegerField()  # place in the order of the run, from 0
    scenario = models.CharField(max_length=60)
    scenario_version = models.PositiveSmallIntegerField(default=1)
    instance_kind = models.CharField(max_length=8)
    instance_seed = models.BigIntegerField()
    seed = models.BigIntegerField()  # sampling seed, for endpoints that accept one
    seed_sent = models.BooleanField(default=False)
    prompt_version = models.CharField(max_length=40, blank=True)
    plan_hash = models.CharField(max_length=64, blank=True)
    engine_version = models.CharField(max_length=20, blank=True)
    added_by_hand = models.BooleanField(default=False)
    errors_retried = models.PositiveSmallIntegerField(default=0)  # how often a user retried the trial after an error

    # the lease
    state = models.CharField(max_length=8, choices=State, default=State.QUEUED)
    execution = models.PositiveIntegerField(default=0)
    server_losses = models.PositiveSmallIntegerField(default=0)  # executions in which the local server exited
    lease_losses = models.PositiveSmallIntegerField(default=0)  # executions whose lease expired with a slot held
    lease = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    worker = models.CharField(max_length=120, blank=True)
    backing_off = models.BooleanField(default=False)  # without a slot: waits before a retry, or was claimed ahead
    concurrency = models.PositiveIntegerField(null=True)  # trials of the provider in flight at the claim
    client_lag_ms = models.FloatField(null=True)  # largest event-loop lag while the trial ran
    queued_at = models.DateTimeField(auto_now_add=True)  # set again when the trial is requeued
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    # the outcome
    outcome = models.CharField(max_length=10, choices=Outcome, blank=True)  # "" until the trial ends
    task_pass = models.BooleanField(null=True)  # protocol and state are right; None: undecided
    parity_pass = models.BooleanField(null=True)  # by the case study rule; None: no such rule, or undecided
    end = models.CharField(max_length=24, blank=True)  # an EndReason of engine/events.py
    failure_class = models.CharField(max_length=60, blank=True)
    category = models.CharField(max_length=40, blank=True)  # the case study's name of the failure
    sentence = models.TextField(blank=True)  # the first problem, in plain words
    signature = models.CharField(max_length=200, blank=True)  # groups failures: class, scenario, JSON path
    # Whether the behaviour occurred that the scenario is meant to provoke; None: it is meant to provoke none.
    behaviour_seen = models.BooleanField(null=True)
    avoided = models.BooleanField(default=False)  # task done without the error that the scenario provokes
    verdict = models.JSONField(default=dict)  # the Verdict of evals/types.py as JSON
    first_bad_ordinal = models.PositiveIntegerField(null=True)  # ordinal of the step with the first problem
    final_text = models.BinaryField(default=b"")  # UTF-8 with lone surrogates (`surrogatepass`)
    error_hint = models.TextField(blank=True)  # what to do about the error that ended the loop; "" without one
    answer_hash = models.CharField(max_length=64, blank=True)  # digest of the texts and calls, without the ids of calls

    # times in milliseconds, and counts
    duration_ms = models.FloatField(null=True)  # of the loop, without waits for the rate control
    backoff_ms = models.FloatField(default=0)
    model_ms = models.FloatField(default=0)
    tool_ms = models.FloatField(default=0)
    first_byte_ms = models.FloatField(null=True)  # from the request to the first byte of the first readable answer
    first_token_ms = models.FloatField(null=True)  # of streamed trials: until the first token
    first_call_ms = models.FloatField(null=True)  # of streamed trials: until the first complete call
    turns = models.PositiveIntegerField(default=0)
    requests = models.PositiveIntegerField(default=0)  # every attempt counts
    retries = models.PositiveIntegerField(default=0)
    output_retries = models.PositiveIntegerField(default=0)  # retries after model output, and re-prompts: new samples
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cached_tokens = models.PositiveBigIntegerField(default=0)
    reasoning_tokens = models.PositiveBigIntegerField(default=0)
    cost = models.FloatField(null=True)  # dollars, as the provider reports them; None: not reported
    paths = models.CharField(max_length=80, blank=True)  # methods that turns used, separated by commas
    # The next three columns have the distinct values of the trial's answers, separated by commas.
    upstream = models.CharField(max_length=120, blank=True)  # the host to which a router sent the request
    fingerprint = models.CharField(max_length=120, blank=True)  # system_fingerprint
    model_echoed = models.CharField(max_length=200, blank=True)  # name of the model
    tools_dropped = models.BooleanField(default=False)  # the server renders the same prompt with and without tools
    not_executed = models.BooleanField(default=False)  # an answer had only calls that could not be read or run
    call_expected = models.BooleanField(null=True)  # None: no tool was offered
    cause = models.CharField(max_length=40, blank=True)  # a code of evals/data/wire_causes.json; "" for none
    # groups failures: cause, scenario, JSON path without list indices, turn
    cause_signature = models.CharField(max_length=240, blank=True)
    causes = models.JSONField(default=list)  # up to 40 causes that occurred, recovered or not (CauseOccurrence)
    wrong_paths = models.JSONField(default=list)  # JSON paths at which valid calls differed from the expected ones
    taxonomy = models.PositiveSmallIntegerField(default=0)  # version of the cause table that was used; 0: none yet
    left_out = models.JSONField(default=list)  # omitted parameters: [{name, why, known}] (OmittedParameter)
    rendered_prompt = models.BinaryField(null=True)  # as sent with method template, or as the server rendered it
    text_stale = models.BooleanField(default=True)  # whether the search text is missing or outdated
    bodies_removed_at = models.DateTimeField(null=True)  # by a rule of retention; None: they are stored
    bodies_rule = models.CharField(max_length=80, blank=True)  # the rule, in words

    label = models.CharField(max_length=80, blank=True)
    note = models.TextField(blank=True)

    class Meta:
        ordering = ["run_id", "position"]
        indexes = [
            models.Index(fields=["provider", "run", "position"], name="claimable", condition=models.Q(state="queued")),
            # Without `lease_until`, so that the renewal of a lease writes no index.
            models.Index(fields=["provider"], name="running_trials", condition=models.Q(state="running")),
            models.Index(fields=["run"], name="open_trials", condition=~models.Q(state="done")),
            models.Index(fields=["id"], include=LISTED_COLUMNS, name="listed_trials"),
            # A search for slow trials matches few trials. Without this index, it would read all of `listed_trials`.
            models.Index(fields=["duration_ms"], name="slow_trials", condition=models.Q(duration_ms__isnull=False)),
            models.Index(fields=["failure_class", "id"], name="classes", condition=~models.Q(failure_class="")),
            models.Index(fields=["cell", "index"]),
            models.Index(fields=["run", "outcome"]),
            models.Index(fields=["run", "id"], include=_LISTED_COLUMNS_OF_RUN, name="trials_of_run"),
            models.Index(fields=["run", "signature"], name="signatures", condition=~models.Q(signature="")),
            models.Index(fields=["run", "finished_at"], name="ended", condition=models.Q(finished_at__isnull=False)),
            models.Index(fields=["cause", "config"], name="causes", condition=~models.Q(cause="")),
            models.Index(fields=["cause_signature", "id"], name="clusters", condition=~models.Q(cause="")),
            GinIndex(
                OpClass(CAUSES_AT_ANY_INDEX, name="jsonb_path_ops"), name="causes_at_any_index", condition=HAS_CAUSES
            ),
            GinIndex(OpClass("wrong_paths", name="jsonb_path_ops"), name="wrong_arguments", condition=HAS_WRONG_PATHS),
            models.Index(
                fields=["finished_at", "id"], name="stale_texts", condition=models.Q(text_stale=True, state="done")
            ),
            models.Index(
                fields=["run", "signature", "outcome"],
                include=["id", "finished_at"],
                name="failure_groups",
                condition=NOT_PASSED,
            ),
            models.Index(
                fields=["id"],
                include=(*LISTED_COLUMNS, "scenario_version", "category", "end"),
                name="failed_trials",
                condition=NOT_PASSED,
            ),
        ]

    def __str__(self) -> str:
        return f"Trial {self.pk}"


class TrialText(models.Model):
    """The searchable text of a trial.

    The text has names of the trial and of called tools, the question, the final answer, the problem and the arguments
    of calls. lab/traces/search_text.py writes it after the trial has ended.

    Attributes:
        text: at most 4,000 characters, names first; searched for parts of words.
        words: the words of the text; searched for whole words and beginnings of words.
    """

    trial = models.OneToOneField(Trial, on_delete=models.CASCADE, primary_key=True, related_name="search_text")
    text = models.TextField()
    words = SearchVectorField()

    class Meta:
        indexes = [
            GinIndex(fields=["words"], name="search_words"),
            GinIndex(OpClass("text", name="gin_trgm_ops"), name="search_parts"),
        ]

    def __str__(self) -> str:
        return f"search text of trial {self.trial_id}"


class Step(models.Model):
    """One attempt of an exchange or one tool call, in one execution of a trial.

    Steps of lost executions are kept, since their requests were sent.

    Attributes:
        ordinal: counts from 1 within the execution.
        backoff_ms: wait before this attempt.
        error_code: a code of providers/data/outcomes.json (exchange) or of the tool's result; "" without an error.
        body_cut: whether the response body was truncated.
        masked: whether a secret was masked in the bodies.
        path: the method that the turn used; "" without an answer, and for a tool.
        ok: whether an answer was read (exchange) or the tool succeeded (tool); None if the database refused the step's
            contents.
    """

    class Kind(models.TextChoices):
        """Kind of the step."""

        EXCHANGE = "exchange", "exchange"
        TOOL = "tool", "tool"

    # The unique index of (trial, execution, ordinal) begins with the trial, so the trial needs no index of its own.
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="steps", db_index=False)
    execution = models.PositiveIntegerField()
    ordinal = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, choices=Kind)
    turn = models.PositiveIntegerField()
    attempt = models.PositiveSmallIntegerField(default=1)
    started_ms = models.FloatField()  # since the start of the execution
    duration_ms = models.FloatField()
    first_byte_ms = models.FloatField(null=True)
    first_token_ms = models.FloatField(null=True)
    first_call_ms = models.FloatField(null=True)
    backoff_ms = models.FloatField(default=0)
    retry_reason = models.CharField(max_length=120, blank=True)

    url = models.CharField(max_length=400, blank=True)
    status = models.PositiveSmallIntegerField(null=True)
    error_code = models.CharField(max_length=60, blank=True)
    error_message = models.TextField(blank=True)
    request_bytes = models.PositiveIntegerField(default=0)
    response_bytes = models.PositiveBigIntegerField(default=0)
    body_cut = models.BooleanField(default=False)
    masked = models.BooleanField(default=False)
    finish_reason = models.CharField(max_length=40, blank=True)
    path = models.CharField(max_length=20, blank=True)
    input_tokens = models.PositiveIntegerField(null=True)
    output_tokens = models.PositiveIntegerField(null=True)
    cost = models.FloatField(null=True)
    upstream = models.CharField(max_length=120, blank=True)
    model_echoed = models.CharField(max_length=200, blank=True)
    fingerprint = models.CharField(max_length=120, blank=True)
    tool_name = models.CharField(max_length=200, blank=True)
    ok = models.BooleanField(null=True)

    class Meta:
        ordering = ["trial_id", "execution", "ordinal"]
        constraints = [models.UniqueConstraint(fields=["trial", "execution", "ordinal"], name="one_step_per_ordinal")]
        indexes = [
            models.Index(
                fields=["trial"],
                include=["attempt", "status", "error_code"],
                name="retry_steps",
                condition=RETRY_RELEVANT_STEP,
            )
        ]

    def __str__(self) -> str:
        return f"step {self.ordinal} of trial {self.trial_id}"


class StepBody(models.Model):
    """The bodies of a step.

    Attributes:
        facts: the step details (lab/traces/step_facts.py) as JSON in bytes, since `jsonb` refuses NUL, lone surrogates
            and NaN.
    """

    step = models.OneToOneField(Step, on_delete=models.CASCADE, primary_key=True, related_name="body")
    request = models.BinaryField(default=b"")
    response = models.BinaryField(default=b"")
    facts = models.BinaryField(default=b"{}")

    def __str__(self) -> str:
        return f"body of {self.step_id}"
