"""Shared views of sampling profiles and presets: create, edit with versions, delete."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.library.entries import EntryPage
from toolbench.lab.query_params import clean_text
from toolbench.web.forms.library import EntryForm
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, find_username, record


@dataclass(frozen=True, slots=True)
class EntryKind:
    """Kind of library entry: sampling profile or preset.

    Attributes:
        plural: name of the kind in breadcrumbs, such as "Presets".
        url_name: URL name of the page of one entry. The other URL names are `{url_name}s`, `{url_name}-new` and
            `{url_name}-delete`. The folder `{url_name}s` has the templates `one.html` and `_fields.html`.
        place_in_new_run: end of the sentence "You can choose it in a new run", such as ", under the strategies"; may be
            empty.
        form: class of the form of an entry.
        get_page: returns the data of an entry's page for the request and the entry's name; raises ObjectDoesNotExist.
    """

    plural: str
    url_name: str
    place_in_new_run: str
    form: type[EntryForm[Any]]
    get_page: Callable[[HttpRequest, str], EntryPage[Any]]

    @property
    def noun(self) -> str:
        """Return the name of the kind in sentences, such as "preset"."""
        return self.form.functions.noun

    @property
    def list_url(self) -> str:
        """Return the URL of the list of all entries."""
        return reverse(f"{self.url_name}s")

    @property
    def new_url(self) -> str:
        """Return the URL of the form of a new entry."""
        return reverse(f"{self.url_name}-new")

    @property
    def fields_template(self) -> str:
        """Return the name of the template that shows all fields of the form except `name`."""
        return f"{self.url_name}s/_fields.html"

    def get_page_or_404(self, request: HttpRequest, name: str) -> EntryPage[Any]:
        """Return the data of an entry's page.

        Raises:
            Http404: no entry has the name.
        """
        try:
            return self.get_page(request, name)
        except ObjectDoesNotExist:
            raise Http404(f"There is no {self.noun} {name}; it may have been deleted.") from None


def create_entry(request: HttpRequest, kind: EntryKind) -> HttpResponse:
    """Show the form of a new entry, filled in from the entry named by ?copy=; on POST, save the entry.

    Raises:
        Http404: no entry has the name in ?copy=.
    """
    copied = clean_text(request.GET.get("copy", ""))
    try:
        form = kind.form.for_new(request.POST if request.method == "POST" else None, copied)
    except ObjectDoesNotExist:
        raise Http404(f"There is no such {kind.noun} to copy.") from None
    entry = form.create(find_username(request))
    if entry is None:
        status = 422 if form.is_bound else 200
        return render_page(request, "library/new.html", {"kind": kind, "form": form}, status=status)
    record(request, Action.ADDED, f"{kind.noun} {entry.name}", reverse(kind.url_name, args=[entry.name]))
    messages.success(request, f"Saved as version 1. You can choose it in a new run{kind.place_in_new_run}.")
    return redirect(kind.url_name, entry.name)


def edit_entry(request: HttpRequest, kind: EntryKind, name: str) -> HttpResponse:
    """Show an entry and its versions; on POST, save a new version.

    Raises:
        Http404: no entry has the name.
    """
    page = kind.get_page_or_404(request, name)
    form = kind.form.for_version(request.POST if request.method == "POST" else None, page)
    number = form.edit(page.entry, find_username(request))
    if number is None:
        context = {"kind": kind, "page": page, "form": form}
        return render_page(request, f"{kind.url_name}s/one.html", context, status=422 if form.is_bound else 200)
    record(request, Action.CHANGED, f"{kind.noun} {name}, version {number}", reverse(kind.url_name, args=[name]))
    messages.success(request, f"This is version {number}. Runs that used another version keep theirs.")
    return redirect(kind.url_name, name)


def delete_entry(request: HttpRequest, kind: EntryKind, name: str) -> HttpResponse:
    """Ask for confirmation; on POST, delete the entry, or archive it if a run used it.

    Raises:
        Http404: no entry has the name, or the entry is built in or already archived.
    """
    page = kind.get_page_or_404(request, name)
    if not page.editable:
        raise Http404(f"A built-in or archived {kind.noun} cannot be deleted.")
    if request.method != "POST":
        back = reverse(kind.url_name, args=[name])
        return render_page(request, "library/delete.html", {"name": name, "back": back})
    try:
        archived = kind.form.functions.delete(page.entry)
    except InvalidFieldsError as error:
        messages.error(request, str(error))
        return redirect(kind.url_name, name)
    record(request, Action.DELETED, f"{kind.noun} {name}", kind.list_url)
    result = "is archived: runs that used it keep their settings" if archived else "is deleted; no run had used it"
    messages.success(request, f"{name} {result}.")
    return redirect(kind.list_url)
