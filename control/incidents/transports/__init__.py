"""The ways out, one room each; a new one is a module here and a line in this table."""

from collections.abc import Mapping

from control.incidents.transports.alertmanager import Alertmanager
from control.incidents.transports.mail import Mail
from control.incidents.transports.pagerduty import PagerDuty
from control.incidents.transports.ports import Transport
from control.incidents.transports.slack import Slack
from control.incidents.transports.webhook import Webhook

_ALL: tuple[Transport, ...] = (PagerDuty(), Slack(), Webhook(), Alertmanager(), Mail())
TRANSPORTS: Mapping[str, Transport] = {transport.name: transport for transport in _ALL}
