// Gives a child session the tool by which it hands over its result. It is loaded in children only, and imports
// nothing, so that one file serves every npm scope under which pi is published.
const STATUSES = ["SUCCESS", "ERROR"];

export default function (pi: any) {
	if (process.env.PI_SUBAGENTS_CHILD !== "1") return;
	pi.registerTool({
		name: "subagent_finalize",
		label: "Finalize",
		description:
			"Return the result of your task. Call it exactly once, as your final action, alone in its message. " +
			"SUCCESS requires a result; ERROR requires an error, and can include partial findings as result.",
		parameters: {
			type: "object",
			properties: {
				status: { type: "string", enum: STATUSES },
				result: { type: "string", description: "The whole answer to the task, or the findings before an error." },
				error: { type: "string", description: "Why the task failed; only with ERROR." },
			},
			required: ["status"],
			additionalProperties: false,
		},
		async execute(_id: string, params: any) {
			const { status, result = "", error = "" } = params ?? {};
			if (!STATUSES.includes(status)) throw new Error(`status must be ${STATUSES.join(" or ")}`);
			if (status === "SUCCESS" && !String(result).trim()) throw new Error("SUCCESS requires a non-empty result");
			if (status === "SUCCESS" && String(error).trim()) throw new Error("SUCCESS cannot have an error: call it with ERROR, or remove error");
			if (status === "ERROR" && !String(error).trim()) throw new Error("ERROR requires a non-empty error");
			return {
				content: [{ type: "text", text: "The result was received. You are done: write nothing more." }],
				details: { status, ...(result ? { result } : {}), ...(error ? { error } : {}) },
				terminate: true,
			};
		},
	});
}
