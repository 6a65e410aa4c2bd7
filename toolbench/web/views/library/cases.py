"""Views of test cases: list, show, create, edit, run, delete, import and export."""

from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from toolbench.lab.cases.edit import UnknownCaseError, delete_case, get_case
from toolbench.lab.cases.files import render_cases
from toolbench.lab.cases.from_trial import CaseNotCreatedError
from toolbench.lab.cases.pages import get_case_page, get_case_sets, get_editable_case_page
from toolbench.lab.models import Case, CaseSet, Run, Trial
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.runs.idempotent_launch import LaunchKeyError
from toolbench.lab.scenarios.case_sets import CaseSetNotFoundError, set_privacy
from toolbench.web.downloads import build_file_response
from toolbench.web.forms.cases import CaseForm, CaseImportForm, CaseRunForm
from toolbench.web.forms.start_run import StartMode, plan_or_launch
from toolbench.web.launch_keys import USED_KEY, launch_form_once, use_form_key
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, find_user, record


@require_safe
def list_cases(request: HttpRequest) -> HttpResponse:
    """Show the list of cases (GET /cases/)."""
    return render_page(request, "cases/list.html", {"sets": get_case_sets()})


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Show the form, filled in from the URL; on POST, save the case and, with the button `run`, run it."""
    run_form = CaseRunForm(request.POST or None)
    try:
        form, note = CaseForm.from_request(request.POST or None, request.GET)
    except CaseNotCreatedError as error:
        raise Http404(str(error)) from None
    if request.method == "POST" and (response := _save_new(request, form, run_form)):
        return response
    context = {"form": form, "run_form": run_form, "note": note, "page": None, "action": request.get_full_path()}
    return render_page(request, "cases/edit.html", context, status=422 if request.method == "POST" else 200)


def _save_new(request: HttpRequest, form: CaseForm, run_form: CaseRunForm) -> HttpResponse | None:
    """Save a new case and, with the button `run`, start its run; return None if nothing was saved."""
    try:
        with use_form_key(request) as launch_key:
            if launch_key.run is not None:
                return redirect("case", launch_key.run.cells.values_list("scenario", flat=True)[0])
            case = launch_key.case = launch_key.case or _save_case(request, form, run_form)
            if case is None:
                return None
            launch_key.run = run = _launch(request, case, run_form) if "run" in request.POST else None
    except LaunchKeyError:
        messages.error(request, USED_KEY)
        return None
    return _redirect_to_trials(request, case.slug, run) if "run" in request.POST else redirect("case", case.slug)


def _save_case(request: HttpRequest, form: CaseForm, run_form: CaseRunForm) -> Case | None:
    trials = Trial.objects.filter(pk=parse_whole_number(request.GET.get("trial", "")) or 0)
    trial_id = trials.values_list("pk", flat=True).first()
    case = form.save(from_trial=trial_id, run_form=run_form if "run" in request.POST else None)
    if case is not None:
        record(request, Action.ADDED, f"test case {case.slug}", reverse("case", args=[case.slug]))
    return case


def _launch(request: HttpRequest, case: Case, run_form: CaseRunForm) -> Run | None:
    run_request = run_form.to_request(case.slug)
    return plan_or_launch(run_form, run_request, start=StartMode.ALL, owner=find_user(request)).run


@require_http_methods(["GET", "HEAD", "POST"])
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a case (GET /cases/<slug>/), or only its live part for htmx; on POST, start trials of it."""
    if request.method == "POST":
        return _start_trials(request, _get_case_or_404(slug).slug, CaseRunForm(request.POST))
    try:
        page = get_case_page(slug)
    except UnknownCaseError as error:
        raise Http404(str(error)) from None
    if page.is_conversation:
        return redirect("conversation", slug)
    run_form = CaseRunForm(request.GET, model=page.last_model)
    result = plan_or_launch(run_form, run_form.to_request(slug), start=StartMode.PLAN, owner=None)
    context = {"page": page, "run_form": run_form, "launch_result": result}
    return render_page(request, "cases/show.html", context, part="live")


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the form of a case; on POST, save a new version. Trials keep their version."""
    try:
        page = get_editable_case_page(slug)
    except UnknownCaseError as error:
        raise Http404(str(error)) from None
    form = CaseForm.for_version(request.POST if request.method == "POST" else None, page)
    if request.method == "POST" and (case := form.save(slug=slug)):
        record(request, Action.CHANGED, f"test case {slug}, version {case.current}", reverse("case", args=[slug]))
        messages.success(request, f"Saved: this is version {case.current}. Trials of older versions keep theirs.")
        return redirect("case", slug)
    context = {"form": form, "page": page, "run_form": None, "note": "", "action": request.path}
    return render_page(request, "cases/edit.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask for confirmation; on POST, delete the case. Its trials are kept."""
    case = _get_case_or_404(slug)
    if request.method != "POST":
        return render_page(request, "cases/delete.html", {"case": case})
    delete_case(slug)
    record(request, Action.DELETED, f"test case {slug}")
    messages.success(request, "The test case is deleted. Its runs and trials keep the version that judged them.")
    return redirect("playground" if case.set.kind == CaseSet.Kind.DRAFT else "cases")


@require_POST
def change_privacy(request: HttpRequest, set_id: int) -> HttpResponse:
    """Make a set of test cases public or private."""
    try:
        case_set = set_privacy(set_id, public=request.POST.get("public") == "yes")
    except CaseSetNotFoundError as error:
        raise Http404(str(error)) from None
    description = (
        "public: its test cases go into exports and bundles"
        if case_set.public
        else "private: its test cases stay out of exports"
    )
    record(request, Action.CHANGED, f"test case set {case_set}: {description}", reverse("cases"))
    messages.success(request, f"{case_set} is {description}.")
    return redirect("cases")


@require_safe
def export(request: HttpRequest, file_format: str) -> HttpResponse:
    """Return the public cases as a file (GET /cases/export.jsonl or .yaml).

    With ?private=1, add the private ones.
    """
    text = render_cases(file_format, private=request.GET.get("private") == "1")
    return build_file_response(text, f"application/{file_format}", name=f"toolbench-cases.{file_format}")


@require_http_methods(["GET", "HEAD", "POST"])
def import_cases(request: HttpRequest) -> HttpResponse:
    """Show the form; on POST, import the cases of a file or text, or none of them if one has an error."""
    form = CaseImportForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and (result := form.save()):
        record(request, Action.IMPORTED, f"test cases: {result.sentence}", reverse("cases"))
        messages.success(request, result.sentence)
        return redirect("cases")
    return render_page(request, "cases/bring.html", {"form": form}, status=422 if request.method == "POST" else 200)


def _start_trials(request: HttpRequest, slug: str, run_form: CaseRunForm) -> HttpResponse:
    """Start trials of a case and redirect to its page.

    If paid requests must be confirmed or a field must be corrected, no trial starts and the page shows the form.
    """
    return _redirect_to_trials(request, slug, launch_form_once(request, run_form, run_form.to_request(slug)).run)


def _redirect_to_trials(request: HttpRequest, slug: str, run: Run | None) -> HttpResponse:
    """Redirect to the page of a case, which shows the run; without a run, it shows the form again."""
    if run is not None:
        return redirect("case", slug)
    fields = {name: request.POST.get(name, "") for name in ("model", "trials")}
    return redirect(f"{reverse('case', args=[slug])}?{urlencode(fields)}#try")


def _get_case_or_404(slug: str) -> Case:
    try:
        return get_case(slug)
    except UnknownCaseError as error:
        raise Http404(str(error)) from None
