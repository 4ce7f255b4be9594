"""A postmortem as people file it: the report, and what they wrote, accepted and promised beside it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from control.incidents.postmortem import drafting
from control.incidents.postmortem.report import Report

# The texts of a postmortem in the order in which they are read, each with its heading.
SECTIONS: Mapping[str, str] = {
    "title": "Title",
    "summary": "Summary",
    "trigger": "Trigger",
    "detection": "Detection",
    "resolution": "Resolution",
    "well": "What went well",
    "badly": "What went badly",
    "lucky": "Where we were lucky",
    "links": "Links",
}
STATES: Mapping[str, str] = {"draft": "draft", "review": "in review", "closed": "closed"}
KINDS = ("prevent", "mitigate", "detect")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """`number` counts its revisions by people; 0 is the text that the log proposes."""

    name: str
    heading: str
    text: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    id: str
    kind: str
    text: str
    owner: str = ""
    link: str = ""
    due: date | None = None
    done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What people added. `texts` holds each edited section with the number of its revision; `struck` codes of proposed
    factors that they do not accept."""

    state: str = "draft"
    severity: str = ""
    owner: str = ""
    due: date | None = None
    texts: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    struck: frozenset[str] = frozenset()
    added: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """`site` is the console's own address, for links into it; "" leaves them out."""

    report: Report
    written: Written = field(default_factory=Written)
    site: str = ""

    @property
    def severity(self) -> str:
        return self.written.severity or drafting.severity(self.report)

    @property
    def run_url(self) -> str:
        return f"{self.site}/runs/{self.report.about.run}/"

    def incident_url(self, incident: str) -> str:
        return f"{self.site}/incidents/{incident}/"

    def seq_url(self, seq: int) -> str:
        return f"{self.run_url}at/{seq}/"

    def section(self, name: str) -> Section:
        text, number = self.written.texts.get(name) or (drafting.text(self.report, name), 0)
        return Section(name=name, heading=SECTIONS[name], text=text, number=number)
