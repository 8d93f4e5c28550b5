// An editor made of the protocol's own client library: `node acp.mjs FOLDER PROGRAM ARGUMENT...` prints what it saw as
// one JSON object. FOLDER is the folder of the sessions' work.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";

import * as acp from "@agentclientprotocol/sdk";

const [folder, program, ...args] = process.argv.slice(2);
const seen = { introduction: null, sessions: [], errors: [], exit: null };

/** Starts the program, and talks to it until `act` is done. Every update is checked by the library's own schemas. */
async function withAgent(choose, act) {
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(child, "exit");
  const updates = [];
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  await acp
    .client({ name: "end-to-end" })
    .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
      updates.push({ asked: params.toolCall.toolCallId, title: params.toolCall.title });
      const option = params.options.find((option) => option.kind === choose);
      return { outcome: { outcome: "selected", optionId: option.optionId } };
    })
    .onNotification(acp.methods.client.session.update, ({ params }) => {
      updates.push(params.update);
    })
    .connectWith(stream, async (agent) => {
      seen.introduction = await agent.request(acp.methods.agent.initialize, {
        protocolVersion: acp.PROTOCOL_VERSION,
        clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
      });
      await act(agent, updates);
    });
  child.stdin.end();
  const [code] = await exited;
  seen.exit = code;
}

/** One line for each thing that was told, and pieces of one answer joined. */
function lines(updates) {
  const told = [];
  let said = "";
  const flush = () => {
    if (said) told.push(`says ${said}`);
    said = "";
  };
  for (const update of updates) {
    if (update.sessionUpdate === "agent_message_chunk") {
      said += update.content.text;
      continue;
    }
    flush();
    if (update.asked) told.push(`asked ${update.title}`);
    else if (update.sessionUpdate === "tool_call") told.push(`call ${update.title} ${update.status ?? "pending"}`);
    else if (update.sessionUpdate === "tool_call_update") told.push(`call ${update.status}`);
    else if (update.sessionUpdate === "user_message_chunk") told.push(`user ${update.content.text}`);
    else told.push(update.sessionUpdate);
  }
  flush();
  return told;
}

async function prompt(agent, sessionId, text) {
  const answer = await agent.request(acp.methods.agent.session.prompt, {
    sessionId,
    prompt: [{ type: "text", text }],
  });
  return answer.stopReason;
}

let first;
for (const [choose, question] of [
  ["allow_once", "My socks from order 1040 have holes. I want my money back."],
  ["reject_once", "My socks from order 1040 have holes. I want my money back."],
  ["allow_once", "Where is my order 1042?"],
]) {
  await withAgent(choose, async (agent, updates) => {
    const { sessionId } = await agent.request(acp.methods.agent.session.new, { cwd: folder, mcpServers: [] });
    first ??= sessionId;
    let stopped;
    try {
      stopped = await prompt(agent, sessionId, question);
    } catch (error) {
      stopped = `error: ${error.message}`;
    }
    seen.sessions.push({ choose, stopped, told: lines(updates) });
  });
}

await withAgent("allow_once", async (agent, updates) => {
  await agent.request(acp.methods.agent.session.load, { sessionId: first, cwd: folder, mcpServers: [] });
  seen.sessions.push({ choose: "load", stopped: null, told: lines(updates) });
  for (const [method, params] of [
    [acp.methods.agent.session.load, { sessionId: "nobody", cwd: folder, mcpServers: [] }],
    [acp.methods.agent.session.new, { cwd: "relative", mcpServers: [] }],
    ["session/dance", {}],
  ]) {
    await agent.request(method, params).catch((error) => seen.errors.push(error.code));
  }
});

console.log(JSON.stringify(seen));
