"""Schemas of plans and estimates of runs."""

from pydantic import Field

from toolbench.api.documents.described import Schema
from toolbench.api.documents.figures import RangeDocument


class SkippedDocument(Schema):
    """Requested configuration or cell that is left out.

    Attributes:
        what: its name.
        why: the reason.
    """

    what: str
    why: str


class PlannedConfigDocument(Schema):
    """Configuration of a plan.

    Attributes:
        model: name of the model.
        strategy: strategy, as it was requested.
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
        cost: dollars; null if they are unknown.
        seconds: time of the slowest provider, with as many concurrent trials as the limits allow; null if it is
            unknown.
        unpriced: names of models without a price, whose cost is not included.
        sources: sentences about the earlier trials and prices that the ranges are based on.
        cells: number of all cells.
        unseen: number of cells without similar earlier trials. `requests` includes their minimum and maximum; tokens,
            cost and time do not include them.
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
    """Plan of a run, which is neither saved nor started.

    Attributes:
        cells: number of cells.
        skipped: requested configurations and cells that are left out.
        trials: maximum of trials.
        least_trials: minimum of trials; less than `trials` with sequential stopping.
        least_requests: requests if every trial passes at the first attempt.
        most_requests: requests if every turn and retry is used.
        paid_requests: maximum of paid requests by the provider's name.
        agreed: number of paid requests to send as `agreed` with the launch; 0 if no confirmation is needed.
        estimate: expected figures; null if nothing is known.
        detectable_points: detectable difference of two configurations in percentage points; null if it is unknown.
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
