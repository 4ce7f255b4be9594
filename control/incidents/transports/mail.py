"""E-mail over SMTP, through Django. Replies of the 4xx kind are tried again, 5xx are final (RFC 5321, 4.2.1)."""

import smtplib
import socket
import ssl
from collections.abc import Mapping
from email.utils import parseaddr

from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.mail.backends.smtp import EmailBackend
from django.core.validators import validate_email

from control.incidents.transports.ports import BadOption, Letter, Message, Option, Outcome, Result, Transport
from control.incidents.transports.texts import cut, headline, plain

ANSWER_S = 10.0
# RFC 5322 asks for at most 998 characters in a line; a subject is read on one.
MOST_SUBJECT = 200
MOST_BODY = 100_000
MOST_RECIPIENTS = 50


class Mail(Transport):
    name = "email"
    word = "E-mail"
    takes = frozenset({"trigger", "resolve", "test"})
    groups = True
    pace_s = 0.0
    options = (
        Option(name="to", label="To", help="Addresses, separated by commas."),
        Option(name="from", label="From", help="The address that it comes from."),
        Option(name="host", label="SMTP server"),
        Option(name="port", label="Port", default="587", needed=False),
        Option(
            name="security",
            label="Security",
            default="starttls",
            needed=False,
            choices=("starttls", "tls", "none"),
        ),
        Option(name="user", label="User", needed=False),
        Option(name="password", label="Password", secret=True, needed=False),
    )

    def check(self, options: Mapping[str, str], secrets: Mapping[str, str]) -> None:
        to = recipients(options["to"])
        if not to or len(to) > MOST_RECIPIENTS:
            raise BadOption("to", f"Name at least one address and at most {MOST_RECIPIENTS}.")
        for name, address in [("from", options["from"]), *(("to", one) for one in to)]:
            try:
                validate_email(parseaddr(address)[1])
            except ValidationError:
                raise BadOption(name, f"“{address[:100]}” is no e-mail address.") from None
        if not options["port"].isascii() or not options["port"].isdigit() or not 0 < int(options["port"]) < 65_536:
            raise BadOption("port", "A port is a number, 587 as a rule.")
        if any(char.isspace() or char in "/@" for char in options["host"]):
            raise BadOption("host", "Give the name of the server alone, like smtp.example.org.")
        if (
            secrets.get("password")
            and options["security"] == "none"
            and options["host"] not in ("127.0.0.1", "localhost")
        ):
            raise BadOption("security", "A password goes over an encrypted connection only.")

    def letter(self, message: Message, options: Mapping[str, str], secrets: Mapping[str, str]) -> Letter:
        made = self._mail(message, options)
        headers = {"Subject": made.subject, "From": made.from_email, "To": ", ".join(made.to), **made.extra_headers}
        where = f"smtp://{options['host']}:{options['port']}"
        return Letter(to=where, headers=headers, body=made.body.encode())

    def _mail(self, message: Message, options: Mapping[str, str]) -> EmailMessage:
        parts = "\n\n".join(plain(notice) for notice in message.notices)
        domain = parseaddr(options["from"])[1].rpartition("@")[2]
        # One thread for all mails about an incident, and one id for all tries of a mail.
        thread = f"<incident.{message.notices[0].id}@{domain}>"
        headers = {
            "Message-ID": f"<{message.id}@{domain}>",
            "In-Reply-To": thread,
            "References": thread,
            "Auto-Submitted": "auto-generated",
        }
        subject = "".join(char if char.isprintable() else " " for char in headline(message))
        return EmailMessage(
            subject=cut(subject, MOST_SUBJECT),
            body=cut(parts, MOST_BODY) + "\n",
            from_email=options["from"],
            to=recipients(options["to"]),
            headers=headers,
        )

    def send(self, message: Message, options: Mapping[str, str], secrets: Mapping[str, str]) -> Outcome:
        backend = EmailBackend(
            host=options["host"],
            port=int(options["port"]),
            username=options.get("user", ""),
            password=secrets.get("password", ""),
            use_tls=options["security"] == "starttls",
            use_ssl=options["security"] == "tls",
            timeout=int(ANSWER_S),
            fail_silently=False,
        )
        try:
            backend.send_messages([self._mail(message, options)])
        except smtplib.SMTPRecipientsRefused as error:
            # Refused by all of them; if one of them may take it later, it is tried again.
            return _of_code(min(code for code, _ in error.recipients.values()), "All recipients are refused.")
        except smtplib.SMTPResponseException as error:
            said = error.smtp_error.decode("utf-8", "replace") if isinstance(error.smtp_error, bytes) else ""
            return _of_code(error.smtp_code, said)
        except socket.gaierror:
            return Outcome(result=Result.RETRY, why=f"The name {options['host'][:100]} leads nowhere (DNS).")
        except TimeoutError:
            return Outcome(result=Result.RETRY, why=f"No answer within {ANSWER_S:g} s.")
        except ssl.SSLError as error:
            return Outcome(result=Result.RETRY, why=f"No secure connection: {error.reason or 'TLS failed'}.")
        except smtplib.SMTPNotSupportedError:
            return Outcome(result=Result.FINAL, why="The server does not speak STARTTLS. Choose another security.")
        except (smtplib.SMTPException, OSError) as error:
            return Outcome(result=Result.RETRY, why=f"The connection failed: {type(error).__name__}.")
        return Outcome(result=Result.DELIVERED, code=250)


def recipients(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _of_code(code: int, said: str) -> Outcome:
    why = "".join(char if char.isprintable() else " " for char in said).strip()[:200]
    known = 400 <= code < 500 or code <= 0
    return Outcome(result=Result.RETRY if known else Result.FINAL, code=code if code > 0 else None, why=why)
