"""Schemas of plans of runs and of estimates."""

from pydantic import Field

from toolbench.api.documents.described import Schema
from toolbench.api.documents.figures import RangeDocument


class SkippedDocument(Schema):
    """Requested profile, configuration or cell that is left out.

    Attributes:
        what: names of model and profile, of the configuration, or of configuration and scenario.
        why: why it is left out.
    """

    what: str
    why: str


class PlannedConfigDocument(Schema):
    """Configuration of a plan.

    Attributes:
        model: name of the model.
        strategy: the strategy as it was requested, such as `production!mistral_ids`.
        method: method; `auto` if a probe is needed to choose it.
        examples: name of the example set; "" for none.
        stream: whether answers are streamed.
    """

    model: str = Field(validation_alias="model_name")
    provider: str = Field(validation_alias="provider_name")
    profile: str
    strategy: str
    method: str
    examples: str
    stream: bool


class EstimateDocument(Schema):
    """Expected requests, tokens, cost and time.

    Attributes:
        requests: number of requests; null if it is unknown.
        tokens: input and output tokens together; null if they are unknown.
        cost: dollars; null if the cost is unknown.
        seconds: time of the slowest provider, with as many concurrent trials as the limits allow; null if it is
            unknown.
        unpriced: names of models without a price, whose cost is not included.
        sources: descriptions of the earlier trials and prices that the ranges are based on.
        cells: number of cells with trials that can still run; only these are estimated.
        unseen: number of these cells without similar earlier trials. `requests` includes their minimum and maximum of
            requests; tokens, cost and time do not include them.
    """

    requests: RangeDocument | None
    tokens: RangeDocument | None
    cost: RangeDocument | None
    seconds: RangeDocument | None
    unpriced: list[str]
    sources: list[str]
    cells: int
    unseen: int


class PlanDocument(Schema):
    """Plan of a run. The plan is not saved, and the run is not started.

    Attributes:
        cells: number of cells.
        skipped: requested configurations and cells that are left out.
        trials: number of trials, those that do not apply included; with sequential stopping, the maximum.
        least_trials: number of trials that a launch queues; with sequential stopping, those of the first round.
        least_requests: number of requests if `least_trials` trials run and all pass at the first attempt; at most
            `request_cap`.
        most_requests: number of requests if `trials` trials run and use every turn and retry; at most `request_cap`.
        paid_requests: maximum number of paid requests, those of probes included, by name of the provider.
        agreed: number of paid requests to send as `agreed` with the launch; 0 if no confirmation is needed.
        estimate: expected figures; null if no cell applies or no earlier trials are similar.
        detectable_points: detectable difference of two configurations in percentage points; null if no difference is
            detectable or no tool scenario applies.
    """

    configs: list[PlannedConfigDocument]
    cells: int
    skipped: list[SkippedDocument]
    trials: int
    least_trials: int
    least_requests: int
    most_requests: int
    paid_requests: dict[str, int]
    agreed: int
    estimate: EstimateDocument | None
    detectable_points: int | None
