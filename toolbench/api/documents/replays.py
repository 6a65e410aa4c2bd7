"""Schemas of replays with other settings, and of re-judged trials."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from toolbench.api.documents.described import Schema
from toolbench.api.documents.figures import BodySchema, Id, RateDocument
from toolbench.api.documents.trials import Text, Texts
from toolbench.lab.replays.what_if_settings import MAX_LIMIT

Limit = Annotated[int, Field(ge=1, le=MAX_LIMIT)]


class WhatIfBody(BodySchema):
    """Trials to replay, named by the id of exactly one trial, cell or run, and the settings of the replay.

    Attributes:
        trial: id of a trial.
        cell: id of a cell.
        run: id of a run.
        strategy: `raw`, `wire_standard`, `baseline`, `production` or the name of a preset; "" keeps the strategy of the
            run.
        presets: names of presets, applied above the strategy and below the scenario's settings; GET /presets lists
            them. The other settings of this body are applied above all layers.
        without: names of transforms and repairs to leave out; the page /policy/ lists them.
        text_format: name of a text format, which the page /formats/ lists; "" keeps the text format of the run.
        max_turns: limit of turns; null keeps that of the run, as for the other limits.
        max_tool_calls_per_turn: limit of calls in one turn.
        max_tool_args_bytes: limit of the arguments of a call in bytes.
        max_tool_output_bytes: limit of the result of a call in bytes.
        ablate: whether to replay also without each transform and repair.
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
        after: outcome of the replay; `unknown` if the replay needs an answer that is not stored, or after an error.
        unknown_from: number of the first step that could not be replayed, 1 after an error; null if `after` is known.
        why: why the outcome is unknown or the trial cannot be replayed; else the sentence of the new verdict.
    """

    trial: int
    scenario: str
    index: int
    before: str
    after: str
    unknown_from: int | None
    why: str


class AblationDocument(Schema):
    """Replay without one transform or repair, or without all of them.

    Attributes:
        name: name of the transform or repair; `all` for the replay without any, which exists if there are several.
        sentence: its outcomes compared with the stored ones, in words.
        changed: ids of trials whose outcome is known in this replay and in that with the settings of the request, and
            differs.
        unsure: number of trials whose outcome is unknown in only one of these two replays.
    """

    name: str
    sentence: str
    changed: list[int]
    unsure: int


class WhatIfDocument(Schema):
    """Result of a replay with other settings.

    Attributes:
        trials: number of finished trials.
        waiting: whether a worker has not finished the replay; send the same request again to get the result.
        refused: why the trials cannot be replayed; "" if they can.
        sentence: the outcomes in words; without a result, why there is none, or "".
        before: answered success with the stored outcomes; null without a result.
        after_least: answered success if every trial with an unknown outcome failed; null likewise.
        after_most: answered success if every trial with an unknown outcome passed; null likewise.
        changes: changed outcomes, then unknown ones, then those that are the same. A worker stores only the first 500
            changed and unknown ones.
        ablations: replays without transforms and repairs; [] without a result, if they were not requested, if these
            settings apply none, or if they would be too many.
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
    """Trial whose outcome changed when it was re-judged.

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
        waiting: whether the last re-judging by a worker has no result: it is queued, is running or has failed.
        sentence: the result of this request in words; "" for a list.
        changes: up to 200 trials whose outcome changed.
    """

    waiting: bool
    sentence: str
    changes: list[JudgementDocument]
