"""Operations on the library: scenarios, sampling profiles and presets."""

from typing import Annotated, Any

from django.http import Http404, HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from toolbench.api.authentication import LAUNCH, READ, get_user, record
from toolbench.api.documents.figures import BodySchema, Id, QuerySchema, SentenceDocument
from toolbench.engine.types import JsonObject
from toolbench.lab.accounts.audit import Action
from toolbench.lab.library.presets import create_preset, delete_preset, edit_preset
from toolbench.lab.library.profiles import create_profile, delete_profile, edit_profile
from toolbench.lab.library.versions import list_versions
from toolbench.lab.models import Preset, SamplingProfile
from toolbench.lab.scenarios.page import ScenarioPage, get_scenario, get_scenarios

router = Router()
Slug = Annotated[str, Field(min_length=1, max_length=80)]
Pattern = Annotated[str, Field(min_length=1, max_length=200)]
Tags = Annotated[list[Annotated[str, Field(min_length=1, max_length=80)]], Field(max_length=50)]
Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]
Version = Annotated[int, Field(ge=1, le=30_000)]


class ScenarioDocument(Schema):
    """A scenario of the list.

    Attributes:
        control: whether it needs no tool.
    """

    slug: str
    title: str
    group: str
    version: int
    control: bool
    intent: str


class ScenarioQuery(QuerySchema):
    """Which instance: without a seed, the fixed wording; without a version, the newest."""

    seed: Seed | None = None
    version: Version | None = None


class ScenarioToolDocument(Schema):
    """A tool that is offered, with its parameters as JSON Schema."""

    name: str
    description: str
    parameters: str


class ScenarioDetailDocument(ScenarioDocument):
    """A scenario with one instance."""

    system: str
    message: str
    tools: list[ScenarioToolDocument]
    rule: str
    checks: list[str]
    versions: list[int]
    seed: int


class ProfileDocument(Schema):
    """A sampling profile.

    Attributes:
        version: send it with a change, so that no other change is overwritten.
    """

    name: str
    options: JsonObject
    applies_to: str
    tags: list[str]
    builtin: bool
    archived: bool
    version: int


class PresetDocument(Schema):
    """A preset: a patch of the policy.

    Attributes:
        version: as for a profile.
    """

    name: str
    patch: JsonObject
    description: str
    builtin: bool
    archived: bool
    version: int


class ProfileContent(BodySchema):
    """Options of a profile, the pattern of the models that it applies to, and tags."""

    options: JsonObject
    applies_to: Pattern = "*"
    tags: Tags = []


class ProfileBody(ProfileContent):
    """A new profile."""

    name: Slug


class ProfileVersionBody(ProfileContent):
    """A new version of a profile, made from the version that was read."""

    version: Id


class PresetContent(BodySchema):
    """The patch of a preset and what it is for."""

    patch: JsonObject
    description: Annotated[str, Field(max_length=2_000)] = ""


class PresetBody(PresetContent):
    """A new preset."""

    name: Slug


class PresetVersionBody(PresetContent):
    """A new version of a preset, made from the version that was read."""

    version: Id


@router.get("/scenarios", response=list[ScenarioDocument], auth=READ)
def list_scenarios(request: HttpRequest) -> list[Any]:
    """List the scenarios that ship with Toolbench; test cases are listed by GET /cases."""
    return [scenario for scenarios in get_scenarios().values() for scenario in scenarios]


@router.get("/scenarios/{slug:slug}", response=ScenarioDetailDocument, auth=READ)
def read_scenario(request: HttpRequest, slug: str, query: Query[ScenarioQuery]) -> dict[str, Any]:
    """Return a scenario with one instance."""
    try:
        seed, version = ("" if value is None else str(value) for value in (query.seed, query.version))
        return _build_scenario(get_scenario(slug, seed, version))
    except KeyError:
        raise Http404(f"There is no scenario {slug}.") from None


@router.get("/profiles", response=list[ProfileDocument], auth=READ)
def list_profiles(request: HttpRequest) -> list[dict[str, Any]]:
    """List the sampling profiles."""
    return [_build_profile(profile) for profile in SamplingProfile.objects.all()]


@router.post("/profiles", response={201: ProfileDocument}, auth=LAUNCH)
def add_profile(request: HttpRequest, body: ProfileBody) -> Status[dict[str, Any]]:
    """Save a new sampling profile."""
    profile = create_profile(body.name, body.model_dump(exclude={"name"}), get_user(request).username)
    record(request, Action.ADDED, f"sampling profile {profile.name}", f"/profiles/{profile.name}/")
    return Status(201, _build_profile(profile))


@router.get("/profiles/{slug:slug}", response=ProfileDocument, auth=READ)
def get_profile(request: HttpRequest, slug: str) -> dict[str, Any]:
    """Return a sampling profile."""
    return _build_profile(_get_profile_or_404(slug))


@router.put("/profiles/{slug:slug}", response=ProfileDocument, auth=LAUNCH)
def change_profile(request: HttpRequest, slug: str, body: ProfileVersionBody) -> dict[str, Any]:
    """Save a new version of a profile. Runs keep the options that they froze."""
    content, username = body.model_dump(exclude={"version"}), get_user(request).username
    number = edit_profile(_get_profile_or_404(slug), content, read_number=body.version, username=username)
    record(request, Action.CHANGED, f"sampling profile {slug}, version {number}", f"/profiles/{slug}/")
    return _build_profile(_get_profile_or_404(slug))


@router.delete("/profiles/{slug:slug}", response=SentenceDocument, auth=LAUNCH)
def remove_profile(request: HttpRequest, slug: str) -> dict[str, str]:
    """Delete a profile, or archive it if a run used it."""
    archived = delete_profile(_get_profile_or_404(slug))
    record(request, Action.DELETED, f"sampling profile {slug}", "/profiles/")
    return {"sentence": f"{slug} is {'archived: runs used it' if archived else 'deleted'}."}


@router.get("/presets", response=list[PresetDocument], auth=READ)
def list_presets(request: HttpRequest) -> list[dict[str, Any]]:
    """List the presets."""
    return [_build_preset(preset) for preset in Preset.objects.all()]


@router.post("/presets", response={201: PresetDocument}, auth=LAUNCH)
def add_preset(request: HttpRequest, body: PresetBody) -> Status[dict[str, Any]]:
    """Save a new preset."""
    preset = create_preset(body.name, body.model_dump(exclude={"name"}), get_user(request).username)
    record(request, Action.ADDED, f"preset {preset.name}", f"/presets/{preset.name}/")
    return Status(201, _build_preset(preset))


@router.get("/presets/{slug:slug}", response=PresetDocument, auth=READ)
def get_preset(request: HttpRequest, slug: str) -> dict[str, Any]:
    """Return a preset."""
    return _build_preset(_get_preset_or_404(slug))


@router.put("/presets/{slug:slug}", response=PresetDocument, auth=LAUNCH)
def change_preset(request: HttpRequest, slug: str, body: PresetVersionBody) -> dict[str, Any]:
    """Save a new version of a preset. Runs keep the layers that they froze."""
    content, username = body.model_dump(exclude={"version"}), get_user(request).username
    number = edit_preset(_get_preset_or_404(slug), content, read_number=body.version, username=username)
    record(request, Action.CHANGED, f"preset {slug}, version {number}", f"/presets/{slug}/")
    return _build_preset(_get_preset_or_404(slug))


@router.delete("/presets/{slug:slug}", response=SentenceDocument, auth=LAUNCH)
def remove_preset(request: HttpRequest, slug: str) -> dict[str, str]:
    """Delete a preset, or archive it if a run used it."""
    archived = delete_preset(_get_preset_or_404(slug))
    record(request, Action.DELETED, f"preset {slug}", "/presets/")
    return {"sentence": f"{slug} is {'archived: runs used it' if archived else 'deleted'}."}


def _get_profile_or_404(name: str) -> SamplingProfile:
    profile = SamplingProfile.objects.filter(name=name).first()
    if profile is None:
        raise Http404(f"There is no sampling profile {name}; it may have been deleted.")
    return profile


def _get_preset_or_404(name: str) -> Preset:
    preset = Preset.objects.filter(name=name).first()
    if preset is None:
        raise Http404(f"There is no preset {name}; it may have been deleted.")
    return preset


def _build_profile(profile: SamplingProfile) -> dict[str, Any]:
    """Return the values of a ProfileDocument."""
    names = ("name", "options", "applies_to", "tags", "builtin")
    shared = {"archived": profile.archived_at is not None, "version": list_versions(profile)[0].number}
    return {name: getattr(profile, name) for name in names} | shared


def _build_preset(preset: Preset) -> dict[str, Any]:
    """Return the values of a PresetDocument."""
    shared = {"archived": preset.archived_at is not None, "version": list_versions(preset)[0].number}
    return {name: getattr(preset, name) for name in ("name", "patch", "description", "builtin")} | shared


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
