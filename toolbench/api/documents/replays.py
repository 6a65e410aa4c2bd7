"""Schemas of replays with other settings, and of re-judging."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from toolbench.api.documents.described import Schema
from toolbench.api.documents.figures import BodySchema, Id, RateDocument
from toolbench.api.documents.trials import Text, Texts
from toolbench.lab.replays.what_if_settings import MAX_LIMIT

Limit = Annotated[int, Field(ge=1, le=MAX_LIMIT)]


class WhatIfBody(BodySchema):
    """Trials to replay, and the settings of the replay. Exactly one of `trial`, `cell` and `run` names the trials.

    `presets` are applied above the layers of the run, `text_format` and the limits above them, and `without` above
    these. The layer of the scenario is applied last.

    Attributes:
        trial: id of a trial.
        cell: id of a cell.
        run: id of a run.
        strategy: `raw`, `wire_standard`, `baseline`, `production` or the name of a preset; "" keeps the strategy of the
            run.
        presets: names of presets to add; GET /presets lists them.
        without: names of transforms and repairs to leave out; the page /policy/ lists them.
        text_format: name of a text format, which the page /formats/ lists; "" keeps the text format of the run.
        max_turns: limit of turns; null keeps the limit of the run.
        max_tool_calls_per_turn: limit of calls in one turn; null as for `max_turns`.
        max_tool_args_bytes: limit of the arguments of a call in bytes; null as for `max_turns`.
        max_tool_output_bytes: limit of the result of a call in bytes; null as for `max_turns`.
        ablate: whether to repeat the replay without each transform and repair in turn.
    """

    trial: Id | None = None
    cell: Id | None = None
    run: Id | None = None
    strategy: Text = ""
    presets: Texts = []
    without: Texts = []
    text_format: Text = ""
    max_turns: Limit | None = None
    max_tool_calls_per_turn: Limit | None = None
    max_tool_args_bytes: Limit | None = None
    max_tool_output_bytes: Limit | None = None
    ablate: bool = False


class ChangeDocument(Schema):
    """Outcomes of a trial with the settings of its run and with the settings of the replay; they may be equal.

    Attributes:
        trial: id of the trial.
        index: number of the repeat within its cell, from 1.
        before: stored outcome: `pass`, `fail`, `infra`, `na` or `cancelled`.
        after: outcome of the replay; `unknown` if the replay needs an answer that is not stored, or after an error;
            equal to `before` if the trial cannot be replayed.
        unknown_from: number of the first step that could not be replayed, from 1; 1 after an error; null if `after` is
            known.
        why: why `after` is unknown or the trial cannot be replayed; otherwise the first problem by the new verdict, or
            "".
    """

    trial: int
    scenario: str
    index: int
    before: str
    after: str
    unknown_from: int | None
    why: str


class AblationDocument(Schema):
    """Replay without one transform or repair, or without any of them.

    Attributes:
        name: name of the transform or repair; `all` for the replay without any of them, if there are several.
        sentence: outcomes of this replay compared with the stored ones, in words.
        changed: ids of the trials whose outcome is known in both this replay and the one with the requested settings,
            and differs.
        unsure: number of trials whose outcome is unknown in exactly one of these two replays.
    """

    name: str
    sentence: str
    changed: list[int]
    unsure: int


class WhatIfDocument(Schema):
    """Result of a replay with other settings.

    Attributes:
        trials: number of finished trials of the trial, cell or run.
        waiting: whether a worker has not finished the replay; send the same request again to get the result.
        refused: why the trials cannot be replayed or the replay failed; "" otherwise.
        sentence: numbers of changed, unknown and unchanged outcomes, in words. Without a result: what to do, or "".
        before: answered success with the stored outcomes; null without a result.
        after_least: answered success if every trial with an unknown outcome failed; null without a result.
        after_most: answered success if every trial with an unknown outcome passed; null without a result.
        changes: changed outcomes, then unknown ones, then unchanged ones. With more than 100 trials, a worker replays
            them and lists only the first 500 changed or unknown ones.
        ablations: replays without transforms and repairs. [] without `ablate`, if the settings apply no transform and
            no repair, for more than 100 trials, and if the trials times the transforms and repairs exceed 400.
    """

    trials: int
    waiting: bool
    refused: str
    sentence: str
    before: RateDocument | None
    after_least: RateDocument | None
    after_most: RateDocument | None
    changes: list[ChangeDocument]
    ablations: list[AblationDocument]


class JudgementDocument(Schema):
    """Trial whose current outcome differs from that of its first verdict.

    Attributes:
        trial: id of the trial.
        before: outcome by the first verdict.
        after: outcome by the current verdict.
        judged_at: time of the current verdict.
    """

    trial: int
    before: str
    after: str
    judged_at: datetime


class RejudgingDocument(Schema):
    """Result of re-judging the trials of a run by the current scenarios and rules.

    Attributes:
        waiting: whether a re-judging by a worker is queued, is running or has failed.
        sentence: what POST did, in words; "" in an answer to GET.
        changes: the trials with a changed outcome, at most 200, by id.
    """

    waiting: bool
    sentence: str
    changes: list[JudgementDocument]
