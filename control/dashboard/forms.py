"""The form that starts a run. It checks shapes only; `starts` judges, and its refusals land on the right field."""

from decimal import Decimal
from typing import Any

from django import forms

from agents.spec import LIMIT_NAMES
from control.fleet.models import Agent, Policy

# Which field a refusal belongs to.
FIELD_OF_CODE = {
    "unknown_agent": "agent",
    "empty_task": "task",
    "task_too_long": "task",
    "bad_base_url": "base_url",
    "base_url_not_allowed": "base_url",
    "credential_host_mismatch": "credential",
    "unknown_credential": "credential",
    "workspace_outside_roots": "workspace",
    "workspace_missing": "workspace",
    "workspace_busy": "workspace",
    "branch_busy": "branch",
    "bad_branch": "branch",
    "unknown_model": "model",
    "unknown_policy": "policy",
    "bad_labels": "labels",
}


class StartForm(forms.Form):
    """Fields in the order in which people fill them; all but agent and task may stay empty."""

    agent = forms.ChoiceField(label="Agent")
    task = forms.CharField(
        label="Task", strip=False, required=False, widget=forms.Textarea(attrs={"rows": 5, "class": "field"})
    )
    model = forms.CharField(label="Model", required=False, help_text="Empty: the agent's own, else the default.")
    base_url = forms.CharField(
        label="Base URL", required=False, help_text="The address before /chat/completions; it usually ends in /v1."
    )
    credential = forms.CharField(
        label="Credential", required=False, help_text="Its label in the credentials file, never the key."
    )
    policy = forms.ChoiceField(label="Policy", required=False)
    max_turns = forms.IntegerField(label="Turns", required=False, min_value=1)
    max_steps = forms.IntegerField(label="Tool steps", required=False, min_value=1)
    max_tokens = forms.IntegerField(label="Tokens", required=False, min_value=1)
    max_cost = forms.DecimalField(label="Cost, US dollars", required=False, min_value=Decimal(0))
    max_seconds = forms.DecimalField(label="Seconds", required=False, min_value=Decimal(0))
    workspace = forms.CharField(
        label="Workspace", required=False, help_text="A directory or git repository. Empty: a fresh one."
    )
    branch = forms.CharField(label="Branch", required=False, help_text="For a repository. Empty: agent/<run>.")
    labels = forms.CharField(label="Labels", required=False, help_text="KEY=VALUE, separated by commas.")
    dry_run = forms.BooleanField(
        label="Dry run: tools that change something only say what they would do", required=False
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        agents = Agent.objects.filter(current=True).order_by("name").values_list("name", flat=True)
        policies = Policy.objects.filter(current=True).order_by("name").values_list("name", flat=True)
        self.fields["agent"].choices = [(name, name) for name in agents]  # type: ignore[attr-defined]
        self.fields["policy"].choices = [("", "The agent's own"), *((name, name) for name in policies)]  # type: ignore[attr-defined]
        for field in self.fields.values():
            if not isinstance(field.widget, forms.CheckboxInput):
                field.widget.attrs.setdefault("class", "field")
            field.widget.attrs.setdefault("autocomplete", "off")

    def clean_labels(self) -> dict[str, str]:
        labels = {}
        for word in filter(None, (part.strip() for part in self.cleaned_data["labels"].split(","))):
            key, equals, value = word.partition("=")
            if not equals or not key.strip():
                raise forms.ValidationError(f"Write labels as KEY=VALUE, separated by commas; “{word}” is none.")
            labels[key.strip()] = value.strip()
        return labels

    def request(self) -> dict[str, Any]:
        """What `StartRequest` takes; fields that were left empty are not named."""
        given = {
            name: value
            for name, value in self.cleaned_data.items()
            if name not in LIMIT_NAMES and value not in ("", None, {})
        }
        limits = {name: self.cleaned_data[name] for name in LIMIT_NAMES if self.cleaned_data.get(name) is not None}
        return {**given, "task": self.cleaned_data["task"], **({"limits": limits} if limits else {})}

    def refuse(self, code: str, message: str, detail: Any) -> None:
        """Put a refusal of `starts` on the field it is about."""
        field = FIELD_OF_CODE.get(code)
        named = detail.get("limit") or detail.get("name") or detail.get("field") if isinstance(detail, dict) else None
        if field is None and named in self.fields:
            field = named
        self.add_error(field, message)

    @property
    def groups(self) -> list[dict[str, Any]]:
        """Fields as the page lays them out."""
        wide = {"task", "dry_run", "labels"}
        layout = [
            ("", ("agent", "policy", "task")),
            ("Model", ("model", "base_url", "credential")),
            ("Limits", LIMIT_NAMES),
            ("Where it works", ("workspace", "branch", "labels", "dry_run")),
        ]
        return [
            {
                "title": title,
                "fields": [{"field": self[name], "wide": name in wide, "check": name == "dry_run"} for name in names],
            }
            for title, names in layout
        ]
