"""Checks of the files that configure subdeck: both settings files, and the files that they lead to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from .config import app_check
from .config.settings import Settings
from .errors import ModelError, RunnerUnavailable, SubdeckError
from .paths import Project, agent_dir, has_settings, user_settings_file
from .system import files


class Severity(StrEnum):
    ERROR = "error"
    """Commands refuse to use the settings."""
    WARNING = "warning"
    """Something that the settings ask for does not work."""
    NOTICE = "notice"
    """A part of a file has no effect."""


class Problem(Struct, frozen=True):
    """Something wrong in a file."""

    severity: Severity
    where: str
    """`path:line`, or only the path if no single line is at fault."""
    what: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


class Findings(Struct, frozen=True):
    settings: Settings
    """The effective settings, without the values that are wrong."""
    problems: tuple[Problem, ...]
    files: tuple[str, ...]
    """The files that were checked."""


def check(project: Project) -> Findings:
    """Check both settings files, pi's file of roles, the cluster's certificates, and the app's keys."""
    if has_settings(project):
        from .config.files import read_both  # the YAML reader, which only a file needs

        reading = read_both(project)
        settings, errors = reading.settings, reading.errors
    else:
        settings, errors = Settings(), ()
    problems = (
        *(Problem(Severity.ERROR, error.where, error.what, error.hint) for error in errors),
        *(Problem(Severity.ERROR, fault.where, fault.what, fault.hint) for fault in settings.faults),
        *(Problem(Severity.WARNING, fault.where, fault.what, fault.hint) for fault in app_check.faults(settings)),
        *_roles(),
        *_certificates(settings),
        *_notifications(settings),
        *(_notice(notice) for notice in settings.notices),
    )
    paths = (user_settings_file(), project.settings_file, roles_file(), *_certificate_files(settings))
    return Findings(settings, problems, tuple(path for path in paths if os.path.lexists(path)))


def _notice(notice: str) -> Problem:
    where, _, what = notice.partition(": ")
    return Problem(Severity.NOTICE, where, what)


def roles_file() -> str:
    """Return the path of pi's file of providers, from which roles are read."""
    from .models.resolvers import PROVIDERS

    return os.path.join(agent_dir(), PROVIDERS)


def _roles() -> Iterator[Problem]:
    from .models.resolvers import provider_roles

    try:
        provider_roles()
    except ModelError as error:
        yield Problem(Severity.WARNING, _with_line(error), error.what, error.hint)


def _with_line(error: SubdeckError) -> str:
    """Return where a JSON file is wrong, with the line of the byte or the name that its error gives."""
    path = error.where
    position, name = re.search(r"\(byte (\d+)\)", error.what), re.search(r'"([^"]+)"', error.what)
    if path != roles_file() or not (position or name):
        return path
    try:
        content = files.read(path)
    except OSError:
        return path
    at = int(position[1]) if position else content.find(f'"{name[1]}"'.encode()) if name else -1
    return f"{path}:{content.count(10, 0, at) + 1}" if at >= 0 else path


def _certificates(settings: Settings) -> Iterator[Problem]:
    """Check the certificates for the scheduler, by the same rules that refuse a run."""
    if not settings.hosts.scheduler:
        return
    from .config.certificates import certificates
    from .config.files import place_in_file

    try:
        certificates(settings.hosts.scheduler, settings.hosts.tls)
    except RunnerUnavailable as error:
        is_key = error.where.startswith("hosts.")
        what = f"{error.where}: {error.what}"
        yield Problem(Severity.WARNING, place_in_file(error.where if is_key else "hosts.tls"), what, error.hint)


def _notifications(settings: Settings) -> Iterator[Problem]:
    """Check the command and the address for notifications."""
    if not (settings.notifications.command or settings.notifications.url):
        return
    from .config.files import place_in_file
    from .notify.faults import faults

    for fault in faults(settings.notifications):
        yield Problem(Severity.WARNING, place_in_file(fault.key), fault.what, fault.hint)


def _certificate_files(settings: Settings) -> tuple[str, ...]:
    from .config.effective_hosts import tls_paths

    if not (settings.hosts.scheduler or "").startswith("tls:"):
        return ()
    named = tls_paths(settings.hosts.tls)
    return named.ca, named.cert, named.key
