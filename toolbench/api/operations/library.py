"""Operations on the library: scenarios, sampling profiles and presets."""

from typing import Annotated, Any

from django.http import Http404, HttpRequest
from ninja import Query, Router, Status
from pydantic import Field

from toolbench.api.authentication import LAUNCH, READ, get_user, record
from toolbench.api.documents.described import Schema
from toolbench.api.documents.figures import BodySchema, Id, QuerySchema, SentenceDocument
from toolbench.engine.types import JsonObject
from toolbench.lab.accounts.audit import Action
from toolbench.lab.library.entries import Entry, EntryFunctions
from toolbench.lab.library.names import MAX_NAME_CHARACTERS
from toolbench.lab.library.presets import PRESET_FUNCTIONS
from toolbench.lab.library.profiles import MAX_PATTERN_CHARACTERS, PROFILE_FUNCTIONS
from toolbench.lab.library.versions import list_versions, read_content
from toolbench.lab.models import Preset, SamplingProfile
from toolbench.lab.scenarios.catalogue import MAX_SEED
from toolbench.lab.scenarios.page import ScenarioPage, get_scenario_page, get_scenarios

router = Router()
_LIST_URLS = {PROFILE_FUNCTIONS.noun: "/profiles/", PRESET_FUNCTIONS.noun: "/presets/"}
Slug = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARACTERS)]
Pattern = Annotated[str, Field(min_length=1, max_length=MAX_PATTERN_CHARACTERS)]
Tags = Annotated[list[Annotated[str, Field(min_length=1, max_length=80)]], Field(max_length=50)]
Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
Version = Annotated[int, Field(ge=1, le=30_000)]


class ScenarioDocument(Schema):
    """Scenario of the list.

    Attributes:
        group: name of its group, whose rates are shown separately.
        version: number of its newest version.
        control: whether its task needs no tool.
        intent: what it tests, in words.
    """

    slug: str
    title: str
    group: str
    version: int
    control: bool
    intent: str


class ScenarioQuery(QuerySchema):
    """Choice of an instance.

    Attributes:
        seed: seed from which the instance is drawn, as `instance_seed` of a trial; null for the published wording.
        version: number of a version of the scenario; null for the newest one.
    """

    seed: Seed | None = None
    version: Version | None = None


class ScenarioToolDocument(Schema):
    """Tool of a scenario.

    Attributes:
        parameters: JSON Schema of its parameters, as text.
    """

    name: str
    description: str
    parameters: str


class ScenarioDetailDocument(ScenarioDocument):
    """Scenario with one instance.

    Attributes:
        system: system prompt; "" without one.
        message: message of the user.
        rule: what counts as a pass, in words.
        checks: names of the checks of its verdict.
        versions: numbers of its versions, the newest first.
        seed: seed of the instance; 0 for the published wording.
    """

    system: str
    message: str
    tools: list[ScenarioToolDocument]
    rule: str
    checks: list[str]
    versions: list[int]
    seed: int


class ProfileDocument(Schema):
    """Sampling profile.

    Attributes:
        options: request parameters by name.
        applies_to: pattern of the names of models that it applies to, such as `qwen*`; upper and lower case differ.
        builtin: whether it comes with Toolbench; it can be neither changed nor deleted.
        archived: whether it was deleted after a run had used it.
        version: number of the newest version. Send it with a change; a change of another version is refused.
    """

    name: str
    options: JsonObject
    applies_to: str
    tags: list[str]
    builtin: bool
    archived: bool
    version: int


class PresetDocument(Schema):
    """Preset: a saved policy layer.

    Attributes:
        patch: its settings by name; the page /policy/ lists the names.
        builtin: whether it comes with Toolbench; it can be neither changed nor deleted.
        archived: whether it was deleted after a run had used it.
        version: number of the newest version. Send it with a change; a change of another version is refused.
    """

    name: str
    patch: JsonObject
    description: str
    builtin: bool
    archived: bool
    version: int


class ProfileContent(BodySchema):
    """Content of a sampling profile.

    Attributes:
        options: request parameters by name, such as {"temperature": 0}.
        applies_to: pattern of the names of models that it applies to; upper and lower case differ. `*` for all.
        tags: words that pages show.
    """

    options: JsonObject
    applies_to: Pattern = "*"
    tags: Tags = []


class ProfileBody(ProfileContent):
    """New sampling profile.

    Attributes:
        name: its name: letters without accents, digits, hyphens and underscores.
    """

    name: Slug


class ProfileVersionBody(ProfileContent):
    """New version of a profile.

    Attributes:
        version: number of the version that was read before the change.
    """

    version: Id


class PresetContent(BodySchema):
    """Content of a preset.

    Attributes:
        patch: settings by name, at least one; the page /policy/ lists the names.
        description: what the preset is for.
    """

    patch: JsonObject
    description: Annotated[str, Field(max_length=2_000)] = ""


class PresetBody(PresetContent):
    """New preset.

    Attributes:
        name: its name: letters without accents, digits, hyphens and underscores.
    """

    name: Slug


class PresetVersionBody(PresetContent):
    """New version of a preset.

    Attributes:
        version: number of the version that was read before the change.
    """

    version: Id


@router.get("/scenarios", response=list[ScenarioDocument], auth=READ)
def list_scenarios(request: HttpRequest) -> list[Any]:
    """List the built-in scenarios. GET /cases lists test cases."""
    return [scenario for scenarios in get_scenarios().values() for scenario in scenarios]


@router.get("/scenarios/{slug:slug}", response=ScenarioDetailDocument, auth=READ)
def read_scenario(request: HttpRequest, slug: str, query: Query[ScenarioQuery]) -> dict[str, Any]:
    """Return a scenario or a test case, with one instance."""
    try:
        seed, version = ("" if value is None else str(value) for value in (query.seed, query.version))
        page = get_scenario_page(slug, seed, version)
    except KeyError:
        raise Http404(f"There is no scenario {slug}.") from None
    if query.version is not None and query.version not in page.versions:
        raise Http404(f"The scenario {slug} has no version {query.version}.")
    return _build_scenario(page)


@router.get("/profiles", response=list[ProfileDocument], auth=READ)
def list_profiles(request: HttpRequest) -> list[dict[str, Any]]:
    """List the sampling profiles, also the archived ones."""
    return [_build_entry(entry) for entry in SamplingProfile.objects.prefetch_related("versions")]


@router.post("/profiles", response={201: ProfileDocument}, auth=LAUNCH)
def add_profile(request: HttpRequest, body: ProfileBody) -> Status[dict[str, Any]]:
    """Save a new sampling profile."""
    return Status(201, _add_entry(request, PROFILE_FUNCTIONS, body.name, body.model_dump(exclude={"name"})))


@router.get("/profiles/{slug:slug}", response=ProfileDocument, auth=READ)
def get_profile(request: HttpRequest, slug: str) -> dict[str, Any]:
    """Return a sampling profile."""
    return _build_entry(_get_entry_or_404(PROFILE_FUNCTIONS, slug))


@router.put("/profiles/{slug:slug}", response=ProfileDocument, auth=LAUNCH)
def change_profile(request: HttpRequest, slug: str, body: ProfileVersionBody) -> dict[str, Any]:
    """Save a new version of a profile, which must be neither built in nor archived. Earlier runs keep their options."""
    return _change_entry(request, PROFILE_FUNCTIONS, slug, body.version, body.model_dump(exclude={"version"}))


@router.delete("/profiles/{slug:slug}", response=SentenceDocument, auth=LAUNCH)
def remove_profile(request: HttpRequest, slug: str) -> dict[str, str]:
    """Delete a profile, or archive it if a run used it."""
    return _remove_entry(request, PROFILE_FUNCTIONS, slug)


@router.get("/presets", response=list[PresetDocument], auth=READ)
def list_presets(request: HttpRequest) -> list[dict[str, Any]]:
    """List the presets, also the archived ones."""
    return [_build_entry(entry) for entry in Preset.objects.prefetch_related("versions")]


@router.post("/presets", response={201: PresetDocument}, auth=LAUNCH)
def add_preset(request: HttpRequest, body: PresetBody) -> Status[dict[str, Any]]:
    """Save a new preset."""
    return Status(201, _add_entry(request, PRESET_FUNCTIONS, body.name, body.model_dump(exclude={"name"})))


@router.get("/presets/{slug:slug}", response=PresetDocument, auth=READ)
def get_preset(request: HttpRequest, slug: str) -> dict[str, Any]:
    """Return a preset."""
    return _build_entry(_get_entry_or_404(PRESET_FUNCTIONS, slug))


@router.put("/presets/{slug:slug}", response=PresetDocument, auth=LAUNCH)
def change_preset(request: HttpRequest, slug: str, body: PresetVersionBody) -> dict[str, Any]:
    """Save a new version of a preset, which must be neither built in nor archived. Earlier runs keep their settings."""
    return _change_entry(request, PRESET_FUNCTIONS, slug, body.version, body.model_dump(exclude={"version"}))


@router.delete("/presets/{slug:slug}", response=SentenceDocument, auth=LAUNCH)
def remove_preset(request: HttpRequest, slug: str) -> dict[str, str]:
    """Delete a preset, or archive it if a run used it. A preset that is a workaround of a model cannot be deleted."""
    return _remove_entry(request, PRESET_FUNCTIONS, slug)


def _get_entry_or_404(functions: EntryFunctions[Entry], name: str) -> Entry:
    entry = functions.entry_class._default_manager.filter(name=name).first()
    if entry is None:
        raise Http404(f"There is no {functions.noun} {name}; it may have been deleted.")
    return entry


def _add_entry(
    request: HttpRequest, functions: EntryFunctions[Entry], name: str, content: dict[str, Any]
) -> dict[str, Any]:
    entry = functions.create(name, content, get_user(request).username)
    record(request, Action.ADDED, f"{functions.noun} {name}", f"{_LIST_URLS[functions.noun]}{name}/")
    return _build_entry(entry)


def _change_entry(
    request: HttpRequest, functions: EntryFunctions[Entry], name: str, base_version: int, content: dict[str, Any]
) -> dict[str, Any]:
    """Save a new version of an entry; `base_version` is the number of the one that the client has read."""
    entry, username = _get_entry_or_404(functions, name), get_user(request).username
    number = functions.edit(entry, content, base_version, username)
    subject = f"{functions.noun} {name}, version {number}"
    record(request, Action.CHANGED, subject, f"{_LIST_URLS[functions.noun]}{name}/")
    return _build_entry(_get_entry_or_404(functions, name))


def _remove_entry(request: HttpRequest, functions: EntryFunctions[Entry], name: str) -> dict[str, str]:
    is_archived = functions.delete(_get_entry_or_404(functions, name))
    record(request, Action.DELETED, f"{functions.noun} {name}", _LIST_URLS[functions.noun])
    return {"sentence": f"{name} is {'archived: runs used it' if is_archived else 'deleted'}."}


def _build_entry(entry: SamplingProfile | Preset) -> dict[str, Any]:
    """Return the values of a ProfileDocument or a PresetDocument."""
    shared = {"name": entry.name, "builtin": entry.builtin, "archived": entry.archived_at is not None}
    return read_content(entry) | shared | {"version": list_versions(entry)[0].number}


def _build_scenario(page: ScenarioPage) -> dict[str, Any]:
    """Return the values of a ScenarioDetailDocument."""
    scenario, instance = page.scenario, page.instance
    names = ("slug", "title", "group", "version", "control", "intent")
    return {name: getattr(scenario, name) for name in names} | {
        "system": instance.system,
        "message": instance.user_text,
        "tools": [
            {"name": name, "description": description, "parameters": parameters}
            for name, description, parameters in page.tools
        ],
        "rule": page.rule,
        "checks": page.checks,
        "versions": page.versions,
        "seed": page.seed,
    }
