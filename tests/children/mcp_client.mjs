// A client made with the TypeScript SDK: node mcp_client.mjs NODE_MODULES PROJECT COMMAND…; prints one JSON document.
import { writeFileSync, existsSync } from "node:fs";
import { join } from "node:path";

const [modules, project, command, ...args] = process.argv.slice(2);
const sdk = join(modules, "@modelcontextprotocol/sdk/dist/esm");
const { Client } = await import(join(sdk, "client/index.js"));
const { StdioClientTransport } = await import(join(sdk, "client/stdio.js"));
const { ToolListChangedNotificationSchema } = await import(join(sdk, "types.js"));

const appeared = async (file) => {
  while (!existsSync(join(project, file))) await new Promise((again) => setTimeout(again, 10));
};

const client = new Client({ name: "typescript", version: "0" });
const changed = new Promise((told) => client.setNotificationHandler(ToolListChangedNotificationSchema, told));
await client.connect(new StdioClientTransport({ command, args, cwd: project, env: process.env, stderr: "inherit" }));

const { tools } = await client.listTools();
const { prompts } = await client.listPrompts();

const progress = [];
const answer = await client.callTool(
  { name: "subagent", arguments: { preset: "scout", task: "tool read\nanswer from afar" } },
  undefined,
  { onprogress: ({ message }) => progress.push(message) },
);

const background = await client.callTool({
  name: "background_agent",
  arguments: { preset: "scout", task: "wait-for go\nanswer later" },
});
const status = await client.callTool({ name: "background_agent_status", arguments: {} });

const abort = new AbortController();
const hanging = client
  .callTool({ name: "subagent", arguments: { preset: "scout", task: "touch begun\nhang" } }, undefined, { signal: abort.signal })
  .then(() => "answered", () => "cancelled");
await appeared("begun");
abort.abort();
const cancelled = await hanging;

writeFileSync(join(project, ".pi/subagents/critic.md"), "---\nname: critic\ndescription: finds faults\n---\nBe strict.\n");
await changed;
const later = (await client.listTools()).tools[0].description;

await client.close();
console.log(JSON.stringify({ tools, prompts, progress, answer, background, status, cancelled, later }));
