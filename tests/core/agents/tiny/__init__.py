"""A kind of agent that only tests have: the row for the table, and the modules that each kind has."""

from subdeck.core.agent_kinds import AgentKind

ROW = AgentKind(name="tiny", title="Tiny Agent", package=__name__)
