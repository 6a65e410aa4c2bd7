"""Bodies of requests that plan, launch, repeat or change a run."""

from typing import Annotated, Literal

from pydantic import Field

from toolbench.api.documents.figures import AgreedBody, BodySchema, Id
from toolbench.engine.types import JsonObject
from toolbench.lab.planning.run_request import MAX_CELL_TRIALS, MAX_RUN_LIMIT
from toolbench.lab.runs.control import MAX_ADDED_TRIALS, MAX_LABEL_CHARACTERS

Name = Annotated[str, Field(min_length=1, max_length=200)]
Names = Annotated[list[Name], Field(max_length=2_000)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
RunLimit = Annotated[int, Field(ge=1, le=MAX_RUN_LIMIT)]
Method = Literal["auto", "native", "text_json", "template", "constrained"]


class ConfigBody(BodySchema):
    """Configuration of a requested run.

    Attributes:
        model: id of a model.
        profile: name of a sampling profile.
        strategy: strategy, as in PlanBody.
        method: method, as in PlanBody.
        examples: name of an example set; "" for none.
        stream: whether answers are streamed.
    """

    model: Id
    profile: Name = "default"
    strategy: Name = "production"
    method: Method = "native"
    examples: Annotated[str, Field(max_length=80)] = ""
    stream: bool = False


class PlanBody(BodySchema):
    """Request for a run: every combination of the lists, or exactly `configs` if they are given.

    A run has at most 100,000 trials.

    Attributes:
        title: title of the run; "" for one that names models and scenarios.
        models: ids of models; GET /models lists them. At least one is required without `configs`.
        profiles: names of sampling profiles.
        strategies: `raw` (no workarounds), `wire_standard` (as `raw`, and only calls in the form of the published
            standards are read), `baseline` (defaults of the provider, no workarounds of the model), `production` (all
            workarounds), or the name of a preset. `+` and a name add a preset, `!` and a name leave out a workaround,
            as in `production!mistral_ids`.
        methods: how calls are requested: `native`: by tools in the request; `text_json`: as JSON in the text;
            `template`: by a prompt in the model's own turn tokens; `constrained`: as text that the endpoint restricts
            to calls; `auto`: by the first one that the endpoint supports.
        examples: names of example sets; "" for none.
        streams: whether answers are streamed.
        scenarios: slugs of scenarios or test cases, or `set:` and the id of a set of test cases; at least one. GET
            /scenarios and GET /cases list them.
        trials: trials of each cell; with sequential stopping, the maximum.
        until: rule of sequential stopping; {} for a fixed number of trials. Its members are `rule`: `threshold` (the
            default), `width` or `best`; `rate`: `given` for answered success (the default) or `delivered` for
            end-to-end success; for `threshold`, `target` in percent (90 by default); for `width`, `width` of the
            interval in percentage points (20 by default); `error`: probability of a wrong decision, as a fraction (0.05
            by default).
        instance_kind: `parity` for the published wording of the scenarios, `drawn` for instances drawn from the seed.
        tool_use_mode: `enforced`: a trial without a tool call fails; `relaxed`: it may pass; `disabled`: no tools are
            sent.
        tool_failure_policy: when failed calls make a trial with `enforced` fail. `fatal`: if the last call of any tool
            failed; `tolerated`: only if all calls failed.
        tool_allowlist: names of the tools that may be called; [] for all.
        tool_denylist: names of tools that may not be called.
        request_cap: request limit of the run; null for none.
        token_cap: token limit of the run; null for none.
        deadline_seconds: trial deadline; null for the default of the installation, which is 600 unless it was changed.
        connect_seconds: timeout for connecting; null for that of the provider.
        read_seconds: timeout for reading; null for that of the provider.
        overrides: settings that replace those of presets, such as {"max_turns": 6}; the page /policy/ lists them.
        seed: start of the random generator; equal requests with an equal seed plan equal trials. Null draws one.
        jobs: concurrency limit of the run at each provider; the provider's own limit also applies. Null for none.
        enforce_applicability: whether to leave out profiles that do not apply to a model.
        probe_unknown: whether to probe models with unknown tool support first, unless the run has a request or token
            limit. With the method `auto`, they are always probed.
        configs: configurations; [] for every combination of the lists.
    """

    title: Annotated[str, Field(max_length=200)] = ""
    models: Annotated[list[Id], Field(max_length=500)] = []
    profiles: Names = ["default"]
    strategies: Names = ["production"]
    methods: Annotated[list[Method], Field(max_length=10)] = ["native"]
    examples: Annotated[list[Annotated[str, Field(max_length=80)]], Field(max_length=20)] = [""]
    streams: Annotated[list[bool], Field(max_length=2)] = [False]
    scenarios: Names = []
    trials: Annotated[int, Field(ge=1, le=MAX_CELL_TRIALS)] = 10
    until: JsonObject = {}
    instance_kind: Literal["parity", "drawn"] = "parity"
    tool_use_mode: Literal["enforced", "relaxed", "disabled"] = "enforced"
    tool_failure_policy: Literal["fatal", "tolerated"] = "fatal"
    tool_allowlist: Names = []
    tool_denylist: Names = []
    overrides: JsonObject = {}
    request_cap: RunLimit | None = None
    token_cap: RunLimit | None = None
    deadline_seconds: Seconds | None = None
    connect_seconds: Seconds | None = None
    read_seconds: Seconds | None = None
    jobs: Annotated[int, Field(ge=1, le=1_000)] | None = None
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    enforce_applicability: bool = True
    probe_unknown: bool = True
    configs: Annotated[list[ConfigBody], Field(max_length=500)] = []


class LaunchBody(PlanBody, AgreedBody):
    """Request for a run, with the confirmed number of paid requests."""


class LimitsBody(AgreedBody):
    """New limits of a paused run.

    Attributes:
        request_cap: request limit, greater than `requests_reserved` of the run; null for none.
        token_cap: token limit, greater than `tokens_used` of the run; null for none.
    """

    request_cap: RunLimit | None
    token_cap: RunLimit | None


class AddTrialsBody(AgreedBody):
    """Trials to add to a cell.

    Attributes:
        count: number of trials.
    """

    count: Annotated[int, Field(ge=1, le=MAX_ADDED_TRIALS)]


class RepeatBody(AgreedBody):
    """Kind of a repeat.

    Attributes:
        kind: `same` for the same seeds; `aa` for new sampling seeds. If the run itself is a repeat with `aa`, then `aa`
            repeats the original run.
    """

    kind: Literal["same", "aa"] = "same"


class LabelBody(BodySchema):
    """Label of a run.

    Attributes:
        label: the label; "" removes it.
    """

    label: Annotated[str, Field(max_length=MAX_LABEL_CHARACTERS)]
