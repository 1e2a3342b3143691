// Tells GitHub Copilot that an agent, not a person, is behind the requests of this session.
// It imports nothing, so that one file serves every npm scope under which pi is published.
export default function (pi: any) {
	if (process.env.PI_SUBAGENTS_GITHUB_COPILOT_INITIATOR !== "agent") return;
	pi.registerProvider("github-copilot", { headers: { "X-Initiator": "agent" } });
}
