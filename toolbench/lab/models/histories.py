"""Tables of histories: imported conversation logs of other programs, with a row for each turn.

These turns have no scenario and no verdict, so they are in no cell and in no rate of trials.
"""

from django.db import models


class History(models.Model):
    """An imported log file."""

    name = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64, unique=True)
    turn_count = models.PositiveIntegerField()
    imported_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.name


class HistoryTurn(models.Model):
    """One turn, from one line of an imported file.

    A field that the line lacks is stored as None or ""; missing `retries` are stored as 0.

    Attributes:
        line: number of the line, from 1.
        turn, step: position of the turn, as the other program numbers it.
        parse_mode: the other program's name for its way of parsing the call; "" without a parse error.
    """

    history = models.ForeignKey(History, on_delete=models.CASCADE, related_name="turns")
    line = models.PositiveIntegerField()
    conversation = models.CharField(max_length=200, blank=True)
    turn = models.PositiveIntegerField(null=True)
    step = models.PositiveIntegerField(null=True)
    at = models.DateTimeField(null=True)
    model = models.CharField(max_length=200)
    prompt_version = models.CharField(max_length=80, blank=True)
    path = models.CharField(max_length=20)  # `strategy` of the line: the method used, such as tool_use or json_fallback
    called = models.BooleanField(null=True)  # a call was attempted; a parse error is an attempt
    ok = models.BooleanField(null=True)  # the turn succeeded
    retries = models.PositiveIntegerField(default=0)
    probe_ok = models.BooleanField(null=True)  # result of the other program's probe; None without one
    probe_error = models.CharField(max_length=200, blank=True)
    parse_mode = models.CharField(max_length=20, blank=True)
    parse_error = models.CharField(max_length=200, blank=True)  # "" if parsing succeeded
    snippet = models.CharField(max_length=200, blank=True)  # beginning of the call that failed to parse, masked

    class Meta:
        ordering = ["history_id", "line"]
        constraints = [models.UniqueConstraint(fields=["history", "line"], name="one_turn_per_line")]
        indexes = [models.Index(fields=["history", "model", "prompt_version", "path"], name="turns_by_path")]

    def __str__(self) -> str:
        return f"line {self.line} of {self.history_id}"
