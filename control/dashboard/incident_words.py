"""The words, shapes and colours of incidents and of what was sent about them."""

from control.dashboard.states import State

SEVERITIES = {
    "critical": State(word="Critical", icon="flash", colour="tripped"),
    "error": State(word="Error", icon="cross", colour="failed"),
    "warning": State(word="Warning", icon="waiting", colour="waiting"),
    "info": State(word="Info", icon="eye", colour="queued"),
}
STATES = {
    "open": State(word="Open", icon="running", colour="tripped"),
    "acknowledged": State(word="Acknowledged", icon="eye", colour="waiting"),
    "resolved": State(word="Resolved", icon="check", colour="completed"),
}
DELIVERIES = {
    "due": State(word="Due", icon="hourglass", colour="waiting"),
    "sending": State(word="Sending", icon="up", colour="running"),
    "delivered": State(word="Delivered", icon="check", colour="completed"),
    "failed": State(word="Failed", icon="cross", colour="failed"),
    "dropped": State(word="Not sent", icon="square", colour="queued"),
}
ACTIONS = {"trigger": "opened", "acknowledge": "acknowledged", "resolve": "resolved", "test": "test"}
LINES = {
    "opened": State(word="Opened", icon="flash", colour="tripped"),
    "again": State(word="Again", icon="retry", colour="waiting"),
    "returned": State(word="Came back", icon="flash", colour="tripped"),
    "flapping": State(word="Comes and goes", icon="retry", colour="waiting"),
    "cleared": State(word="Condition over", icon="check", colour="completed"),
    "reminded": State(word="Told again", icon="up", colour="waiting"),
    "escalated": State(word="Second channel", icon="up", colour="waiting"),
    "undelivered": State(word="Not delivered", icon="cross", colour="failed"),
    "acknowledged": State(word="Acknowledged", icon="eye", colour="running"),
    "assigned": State(word="Assigned", icon="edit", colour="running"),
    "comment": State(word="Comment", icon="note", colour="running"),
    "snoozed": State(word="Snoozed", icon="pause", colour="queued"),
    "woken": State(word="Snooze ended", icon="play", colour="queued"),
    "resolved": State(word="Resolved", icon="check", colour="completed"),
    "reopened": State(word="Reopened", icon="flash", colour="tripped"),
    "notice_delivered": State(word="Notice delivered", icon="up", colour="completed"),
    "notice_failed": State(word="Notice failed", icon="cross", colour="failed"),
}
OTHER = State(word="Note", icon="note", colour="queued")
