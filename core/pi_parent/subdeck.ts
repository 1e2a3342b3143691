// Gives a session of pi the tools of subdeck. All that is decided is decided by `subdeck tool …`, which is asked in JSON;
// this file carries words between it and pi. It imports nothing from pi, so that one file serves every npm scope.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";

const COMMAND: string[] = ["subdeck"];

const CHANNELS = ["subagents:created", "subagents:started", "subagents:completed", "subagents:failed"];
const BG_RUN = "pi-subagents:bg-run";
const BG_UPDATE = "pi-subagents:bg-update";
const BG_DONE = "pi-subagents:bg-done";
const LOOKS: Json = { completed: ["✓", "success"], failed: ["✗", "error"], aborted: ["■", "warning"] };
const STATUS_KEY = "subdeck";
const PATIENCE_MS = { term: 2000, kill: 8000, firstCounts: 5000, idle: 25, again: 1000 };
const WATCH_TRIES = 5;

type Json = Record<string, any>;
type Link = {
	send(message: Json): void;
	/** Says that nothing more is sent. */
	finish(): void;
	/** Ends it, by force when it takes too long. */
	end(): void;
	/** Lets pi end while this one goes on. */
	release(): void;
	/** Why it is over; never rejects. */
	ended: Promise<string>;
};

/** Starts one subdeck process that speaks in JSON lines. */
function open(words: string[], cwd: string, onLine: (line: Json) => void): Link {
	const child = spawn(COMMAND[0], [...COMMAND.slice(1), ...words], { cwd, stdio: ["pipe", "pipe", "pipe"] });
	const timers: NodeJS.Timeout[] = [];
	const pipes: any[] = [child.stdin, child.stdout, child.stderr];
	let rest = "";
	let complaint = "";
	for (const pipe of pipes) pipe?.on("error", () => {}); // a process that went away is told by `ended`
	child.stdout?.setEncoding("utf8").on("data", (text: string) => {
		const lines = (rest + text).split("\n");
		rest = lines.pop() ?? "";
		for (const line of lines) {
			try {
				onLine(JSON.parse(line));
			} catch (error) {
				complaint = `${complaint}${(error as Error)?.message ?? error}\n`;
			}
		}
	});
	child.stderr?.setEncoding("utf8").on("data", (text: string) => {
		complaint = (complaint + text).slice(-4000);
	});
	const ended = new Promise<string>((resolve) => {
		child.on("error", (error) => resolve(`${COMMAND.join(" ")}: ${error.message}; run "subdeck connect pi" again`));
		child.on("close", (code, signal) => resolve(complaint.trim() || `it ended with ${signal ?? `exit code ${code}`}`));
	});
	void ended.then(() => timers.forEach(clearTimeout));
	return {
		ended,
		send: (message) => void child.stdin?.write(`${JSON.stringify(message)}\n`),
		finish: () => void child.stdin?.end(),
		end() {
			child.stdin?.end();
			for (const [signal, wait] of [["SIGTERM", PATIENCE_MS.term], ["SIGKILL", PATIENCE_MS.kill]] as const) {
				timers.push(setTimeout(() => child.kill(signal), wait).unref());
			}
		},
		release() {
			child.unref();
			for (const pipe of pipes) pipe?.unref?.();
		},
	};
}

/** Asks one question and answers the one line that comes back. */
async function ask(words: string[], cwd: string, question: Json): Promise<Json> {
	let answer: Json | undefined;
	const link = open(words, cwd, (line) => {
		answer = line;
	});
	link.send(question);
	link.finish();
	const why = await link.ended;
	if (!answer) throw new Error(why);
	return answer;
}

class Parent {
	private ctx: any;
	private over = false;
	private readonly links = new Set<Link>();
	private following: Promise<void> | undefined;
	private watchTries = 0;
	/** Background runs by pi's own entries: whether the end of each has been told. */
	private readonly runs = new Map<string, boolean>();
	/** Ends that came before the entry of their run. */
	private readonly early = new Map<string, Json>();
	private readonly untold: Json[] = [];
	private readonly failedCalls = new Set<string>();
	private readonly complaints = new Set<string>();
	private registering: Promise<void> = Promise.resolve();
	private models: string[] = [];
	private key: string | null = null;
	private readonly pi: any;

	constructor(pi: any) {
		this.pi = pi;
		this.on("session_start", () => this.rebuild());
		this.on("before_agent_start", async () => {
			this.tellEnds();
			await this.register();
		});
		this.on("model_select", () => this.register());
		this.on("agent_end", () => this.tellEndsWhenIdle());
		this.on("tool_result", (event) => (this.failedCalls.delete(event.toolCallId) ? { isError: true } : undefined));
		this.on("session_shutdown", () => this.close());
		try {
			pi.registerMessageRenderer?.(BG_DONE, ended);
		} catch {} // pi then shows the message with its own label
	}

	private on(name: string, handle: (event: any) => any): void {
		this.pi.on(name, async (event: any, ctx: any) => {
			this.ctx = ctx;
			try {
				return await handle(event);
			} catch (error) {
				this.complain(error);
			}
		});
	}

	/** Runs what no caller waits for, a timer's or a process's doing; an exception there would be the end of pi. */
	private quietly(action: () => unknown): void {
		if (this.over) return;
		try {
			action();
		} catch (error) {
			this.complain(error);
		}
	}

	private complain(error: unknown): void {
		try {
			const text = `subdeck: ${(error as Error)?.message ?? error}`;
			if (this.over || this.complaints.has(text) || !this.ctx?.hasUI) return;
			this.complaints.add(text);
			this.ctx.ui.notify(text, "warning");
		} catch {
			this.over = true; // not even that: the session is gone
		}
	}

	// --- tools

	/** Asks each time, because presets change as models do. */
	private register(): Promise<void> {
		this.registering = this.registering.then(() => this.registerNow()).catch((error) => this.complain(error));
		return this.registering;
	}

	private async registerNow(): Promise<void> {
		if (this.over) return;
		this.models = this.ctx.modelRegistry.getAvailable().map((model: any) => `${model.provider}/${model.id}`);
		const { cwd } = this.ctx;
		const answer = await ask(["tool", "register"], cwd, { models: this.models, key: this.key, cwd });
		if (this.over) return;
		this.key = answer.key;
		if (answer.error) this.complain(inWords(answer.error));
		if (!answer.register) return;
		for (const { name, label, description, parameters } of answer.tools) {
			const execute = (id: string, params: Json, signal: AbortSignal | undefined, onUpdate: any, ctx: any) =>
				this.call(name, id, params, signal, onUpdate, ctx);
			this.pi.registerTool({ name, label, description, parameters, execute });
		}
	}

	private async call(name: string, id: string, params: Json, signal: AbortSignal | undefined, onUpdate: any, ctx: any) {
		this.ctx = ctx;
		await this.follow().catch((error) => this.complain(error)); // it tells pi.events of foreground runs, too
		if (signal?.aborted) throw new Error("cancelled before it began");
		let result: Json | undefined;
		let link: Link | undefined;
		const answered = new Promise<void>((resolve) => {
			link = open(["tool", "call", name], ctx.cwd, (line) => {
				if (line.type === "progress") onUpdate?.(content(line));
				else if (line.type === "resolve") link?.send({ id: line.id, ...this.resolve(line.ref) });
				else if (line.type === "result") {
					result = line;
					resolve();
				}
			});
		});
		const cancel = () => link?.end();
		this.links.add(link!);
		signal?.addEventListener("abort", cancel, { once: true });
		try {
			link!.send({ params, parent: this.parent(), models: this.models, cwd: ctx.cwd, resolves: true });
			const why = await Promise.race([answered, link!.ended]);
			if (!result) throw new Error(signal?.aborted ? "cancelled" : `subdeck gave no answer: ${why}`);
		} finally {
			signal?.removeEventListener("abort", cancel);
			cancel();
			this.links.delete(link!);
		}
		const { entry } = result.details ?? {};
		if (entry) this.quietly(() => this.began(entry));
		if (result.isError) this.failedCalls.add(id);
		return content(result);
	}

	private parent(): Json {
		const session = this.ctx.sessionManager;
		const file = session.getSessionFile();
		const hasFile = file && existsSync(file); // pi writes it with the first answer
		const model = this.ctx.model;
		return {
			session: session.getSessionId(),
			sessionFile: hasFile ? file : null,
			branch: hasFile ? null : session.getBranch(),
			activeTools: this.pi.getActiveTools(),
			allTools: this.pi.getAllTools?.().map((tool: any) => tool.name) ?? null,
			model: model ? `${model.provider}/${model.id}` : null,
			runs: [...this.runs.keys()],
		};
	}

	/** Asks other extensions what a model reference stands for; where nobody reacted there is nothing in the answer. */
	private resolve(ref: string): Json {
		const probe: Json = { ref };
		this.pi.events?.emit("model:resolve", probe);
		const found = probe.model?.id ? `${probe.model.provider}/${probe.model.id}` : null;
		const resolved = probe.resolved ?? found;
		const { thinkingLevel = null, error = null, available } = probe;
		return { resolved, thinkingLevel, ...(resolved ? {} : { error, roles: textsOf(available?.roles) }) };
	}

	// --- background runs

	private async rebuild(): Promise<void> {
		for (const entry of this.ctx.sessionManager.getEntries()) {
			if (entry.type === "custom") this.remember({ customType: entry.customType, data: entry.data });
		}
		const running = this.unended().length;
		this.showCounts({ total: this.runs.size, text: `bg: ${running} running / ${this.runs.size} total` });
		const counted = running ? this.follow() : undefined;
		await Promise.all([this.register(), counted]);
	}

	private remember(entry: Json): void {
		const runId = entry.data?.runId;
		if (typeof runId !== "string" || (entry.customType !== BG_RUN && entry.customType !== BG_UPDATE)) return;
		this.runs.set(runId, entry.customType === BG_UPDATE);
	}

	private append(entry: Json): void {
		this.pi.appendEntry(entry.customType, entry.data);
		this.remember(entry);
	}

	private began(entry: Json): void {
		this.append(entry);
		const early = this.early.get(entry.data.runId);
		if (early) this.end(early);
	}

	private unended(): string[] {
		return [...this.runs].filter(([, told]) => !told).map(([runId]) => runId);
	}

	/** Watches what runs; the promise is kept when the ends that came before have been told, or it takes too long. */
	private follow(): Promise<void> {
		if (this.over) return Promise.resolve();
		this.following ??= this.followNow();
		return this.following;
	}

	private async followNow(): Promise<void> {
		let counted = () => {};
		const first = new Promise<void>((resolve) => {
			counted = resolve;
		});
		const { cwd, sessionManager } = this.ctx;
		const link = open(["tool", "watch"], cwd, (line) =>
			this.quietly(() => {
				if (line.type === "ended") this.end(line);
				else if (line.type === "event") this.emit(line);
				else if (line.type === "asked") this.notify(line.notice);
				else if (line.type === "error") this.complain(inWords(line.error));
				else if (line.type === "counts") {
					this.watchTries = 0;
					this.showCounts(line);
					counted();
				}
			}),
		);
		this.links.add(link);
		link.send({ session: sessionManager.getSessionId(), cwd, runs: this.unended() });
		void link.ended.then((why) => this.quietly(() => this.watchAgain(link, why)));
		const timer = setTimeout(counted, PATIENCE_MS.firstCounts);
		await Promise.race([first, link.ended]);
		clearTimeout(timer);
		link.release();
	}

	private watchAgain(link: Link, why: string): void {
		this.links.delete(link);
		this.following = undefined;
		this.watchTries += 1;
		if (!this.unended().length) return;
		if (this.watchTries > WATCH_TRIES) throw new Error(`background runs are no longer watched: ${why}`);
		const again = () => this.quietly(() => void this.follow().catch((error) => this.complain(error)));
		setTimeout(again, PATIENCE_MS.again * this.watchTries).unref();
	}

	private end(line: Json): void {
		const runId = line.run?.runId;
		if (!this.runs.has(runId)) this.early.set(runId, line);
		if (this.runs.get(runId) !== false) return;
		this.runs.set(runId, true);
		this.untold.push(line);
		this.notify(line.notice);
		this.tellEnds();
	}

	private notify(notice: Json | undefined): void {
		if (this.ctx.hasUI && notice) this.ctx.ui.notify(notice.text, notice.level);
	}

	/** Writes entry and message together, only while no turn goes on: pi 0.73 would steer the turn with the message. */
	private tellEnds(): void {
		while (this.untold.length && this.ctx.isIdle()) {
			const { entry, message } = this.untold.shift()!;
			this.append(entry);
			if (message) this.pi.sendMessage(message, { triggerTurn: false });
		}
	}

	/** pi is idle only some moments after it has said that the turn is over. */
	private tellEndsWhenIdle(tries = 200): void {
		if (!this.untold.length || tries === 0) return;
		const tell = () => {
			this.tellEnds();
			this.tellEndsWhenIdle(tries - 1);
		};
		setTimeout(() => this.quietly(tell), PATIENCE_MS.idle).unref();
	}

	private showCounts({ total, text }: Json): void {
		if (this.ctx.hasUI) this.ctx.ui.setStatus(STATUS_KEY, total ? text : undefined);
	}

	private emit(line: Json): void {
		if (CHANNELS.includes(line.channel)) this.pi.events?.emit(line.channel, line.payload);
	}

	private close(): void {
		this.quietly(() => this.tellEnds());
		this.over = true;
		for (const link of this.links) link.end();
	}
}

function content(line: Json): Json {
	return { content: [{ type: "text", text: line.text ?? "" }], details: line.details ?? {} };
}

/** Draws the message about the end of a background run, with the two methods that pi asks of a component. */
function ended({ content, details }: Json, _options: Json, theme: any): Json {
	const [symbol, colour] = LOOKS[details?.status] ?? ["•", "muted"];
	const text = `${symbol} ${String(content).replace(/[\x00-\x1f\x7f-\x9f]+/g, " ")}`;
	return {
		render: (width: number) => wrapped(text, Math.max(2, width - 2)).map((row) => ` ${theme.fg(colour, row)}`),
		invalidate() {},
	};
}

/** Breaks a text into rows, where it can at a blank. */
function wrapped(text: string, width: number): string[] {
	const rows: string[] = [];
	let row = "";
	for (const character of text) {
		if (cells(row + character) > width) {
			const end = row.lastIndexOf(" ") + 1 || row.length;
			rows.push(row.slice(0, end).trimEnd());
			row = row.slice(end);
		}
		row += character;
	}
	return [...rows, row];
}

/** At most as many cells as this takes: what is not Latin counts as two, because a row that is too wide ends pi. */
function cells(text: string): number {
	return [...text].reduce((sum, character) => sum + (character.codePointAt(0)! < 0x300 ? 1 : 2), 0);
}

/** The texts of an object that another extension made, which may hold anything. */
function textsOf(record: unknown): Json {
	return Object.fromEntries(Object.entries(record ?? {}).filter(([, value]) => typeof value === "string"));
}

function inWords({ what, where, hint }: Json): string {
	return [what, where, hint].filter(Boolean).join("; ");
}

export default function (pi: any) {
	if (process.env.PI_SUBAGENTS_GITHUB_COPILOT_INITIATOR === "agent") {
		pi.registerProvider("github-copilot", { headers: { "X-Initiator": "agent" } });
	}
	if (process.env.PI_SUBAGENTS_CHILD === "1") return;
	new Parent(pi);
}
