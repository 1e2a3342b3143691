"""Whether a turn was ended by a denial: a call was denied, or nobody answered, and nothing of the model came after it.

Pure. An agent that goes on after a denial has had an answer from the model since: a text, a thought, or a further call
that was carried out. An agent that ends its turn with none of these was ended by the denial, and its last text is what
it said before it.
"""

from __future__ import annotations

from .events import AssistantText, Decision, Event, Interrupted, Message, Thinking, ToolCall, ToolResult
from .model import MessageState, Verdict

UNANSWERED = "the agent ended its turn without an answer to its request"
ENDED_BY = "the agent ended its turn after a request was denied"


class Denials:
    """Takes the events of one child in their order, and each denial when it is given."""

    def __init__(self) -> None:
        self.words = ""
        """What was denied, as a sentence; empty where the model has been at work since, or nothing was."""
        self._has_result = False
        """Whether the denied call has ended, so that a call told from then on may be the model's next one."""
        self._later: set[str] = set()
        """Calls told since then."""

    def denied(self, what: str, *, is_told: bool = False) -> None:
        """Take a denial; with `is_told` the agent has said already that its call failed."""
        self.words = f"{ENDED_BY}: {what}" if what else ENDED_BY
        self._begin(is_told)

    def saw(self, event: Event) -> None:
        match event:
            case Decision(verdict=Verdict.WITHDRAWN):
                if not self.words:
                    self.words = UNANSWERED
                    self._begin(False)
            case _ if not self.words:
                return
            case AssistantText(text=text) | Thinking(text=text):
                if text.strip():
                    self.words = ""
            case ToolCall(tool_call_id=call) if self._has_result:
                self._later.add(call)
            case ToolResult(tool_call_id=call, is_error=is_error):
                self._has_result = True
                if call in self._later and not is_error:
                    self.words = ""
            case Message(state=MessageState.DELIVERED) | Interrupted():
                self.words = ""
            case _:
                pass

    def _begin(self, has_result: bool) -> None:
        self._has_result = has_result
        self._later.clear()
