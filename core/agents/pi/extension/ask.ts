// Has a child session ask subdeck before each call of the tools that the run's permissions are about. It is loaded in
// children only, and imports nothing, so that one file serves every npm scope under which pi is published.
const TITLE = "subdeck: may this tool be called?";
const OWN_TOOL = "subagent_finalize";

export default function (pi: any) {
	if (process.env.PI_SUBAGENTS_CHILD !== "1") return;
	const asked = (process.env.SUBDECK_ASKED_TOOLS ?? "").split(",").filter(Boolean);
	const isAsked = (tool: string) =>
		tool !== OWN_TOOL && asked.some((name) => (name.endsWith("*") ? tool.startsWith(name.slice(0, -1)) : tool === name));
	pi.on("tool_call", async (event: any, ctx: any) => {
		if (!isAsked(event.toolName)) return;
		if (process.env.SUBDECK_BY_HAND === "1") {
			// A person has taken the run over and sits here: they are asked, in words for people.
			const isAllowed = await ctx.ui.confirm(`May ${event.toolName} be called?`, JSON.stringify(event.input));
			return isAllowed ? undefined : { block: true, reason: "Denied." };
		}
		let answer: string | undefined;
		try {
			const about = JSON.stringify({ id: event.toolCallId, tool: event.toolName, args: event.input });
			answer = await ctx.ui.input(TITLE, about, { signal: ctx.signal });
		} catch (error: any) {
			return { block: true, reason: `Denied: cannot ask for permission (${error?.message ?? error})` };
		}
		if (answer === "allow") return;
		const why = (answer ?? "").replace(/^deny(: )?/, "");
		return { block: true, reason: why ? `Denied: ${why}` : "Denied." };
	});
}
