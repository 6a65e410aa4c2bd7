"""What the lab refuses, shown in the form it was asked with."""

from django import forms

from toolbench.lab.errors import InvalidFieldsError


def add_form_errors(form: forms.Form, refused: InvalidFieldsError) -> None:
    """Each sentence beside its field; what has no field stands at the top. A field that the form itself found wrong
    reached the lab blank, and keeps its own sentence alone."""
    wrong = set(form.errors)
    for name, sentences in refused.errors.items():
        for sentence in sentences if name not in wrong else ():
            form.add_error(name if name in form.fields else None, sentence)
