// The official client of AG-UI against `harness serve`, with the shipped example.
import assert from "node:assert/strict";
import { HttpAgent } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import { EventSchema } from "@ag-ui/core/schemas";

// The client warns about fields that the protocol does not have.
console.warn = (text) => assert.fail(text);

const url = `${process.env.BASE_URL}/ag-ui`;
const headers = { Authorization: `Bearer ${process.env.TOKEN}` };
const question = "Where is my order 1042?";
const refund = "My socks from order 1040 have a hole. Please refund them.";
const open = (options) => new HttpAgent({ url, headers, ...options });
const user = (content) => ({ id: crypto.randomUUID(), role: "user", content });

// A run; its events, each of which has the form of the schema.
async function run(agent, parameters = {}) {
  const events = [];
  const done = await agent.runAgent(parameters, {
    onEvent: ({ event }) => {
      EventSchema.parse(event);
      events.push(event);
    },
  });
  return { events, types: events.map((event) => event.type), last: events.at(-1), ...done };
}

// A run with tools: its events, and the messages that the client builds of them.
const agent = open();
agent.addMessage(user(question));
const first = await run(agent);
assert.equal(first.types[0], EventType.RUN_STARTED);
assert.deepEqual(first.last.outcome, { type: "success" });
assert.equal(first.result.stop_reason, "answer_finalized");
assert.match(agent.messages.at(-1).content, /NP-77342/);
const calls = agent.messages.flatMap((message) => message.toolCalls ?? []);
const results = agent.messages.filter((message) => message.role === "tool");
assert.ok(calls.length > 0);
assert.deepEqual(results.map((result) => result.toolCallId), calls.map((call) => call.id));
for (const call of calls) JSON.parse(call.function.arguments);
const steps = first.events.filter((event) => event.type === EventType.STEP_STARTED).map((event) => event.stepName);
assert.ok(new Set(steps).size > 1, `agents: ${steps}`);

// The client sends the whole conversation again; the thread has each message once.
agent.addMessage(user("And order 1040?"));
const second = await run(agent);
assert.equal(second.last.type, EventType.RUN_FINISHED);
const thread = `${process.env.BASE_URL}/threads/${agent.threadId}/messages`;
const { messages } = await (await fetch(thread, { headers })).json();
assert.equal(messages.filter((message) => message.role === "user").length, 2);

// A call that requires approval ends the run, and the next one decides on it.
async function decided(resume) {
  const agent = open();
  agent.addMessage(user(refund));
  const asked = await run(agent);
  const [interrupt] = asked.last.outcome.interrupts;
  const custom = asked.events.find((event) => event.name === "harness.approval_requested");
  assert.equal(custom.value.id, interrupt.id);
  assert.equal(custom.value.callId, interrupt.toolCallId);
  assert.ok(Object.keys(custom.value.arguments).length > 0);
  assert.equal(agent.pendingInterrupts.length, 1);
  const done = await run(agent, { resume: [{ interruptId: interrupt.id, ...resume }] });
  const result = done.events.find((event) => event.toolCallId === interrupt.toolCallId);
  assert.equal(result.type, EventType.TOOL_CALL_RESULT);
  assert.equal(agent.pendingInterrupts.length, 0);
  return result;
}
const granted = await decided({ status: "resolved", payload: { approved: true } });
assert.equal(granted.metadata, undefined);
const denied = await decided({ status: "resolved", payload: { approved: false, reason: "no" } });
assert.match(denied.content, /no/);
assert.ok(denied.metadata.harness.isError);
assert.ok((await decided({ status: "cancelled" })).metadata.harness.isError);

// A client that disconnects ends the run. The client may leave the promise of such a run open.
const aborted = open();
aborted.addMessage(user(question));
await new Promise((done) => {
  const abort = () => (aborted.abortRun(), done());
  aborted.runAgent({}, { onTextMessageContentEvent: abort }).catch(done);
});
const status = `${process.env.BASE_URL}/threads/${aborted.threadId}/status`;
while ((await (await fetch(status, { headers })).json()).state !== "idle");

// Errors.
async function rejected(options, parameters, status) {
  const agent = open(options);
  agent.addMessage(user(question));
  await assert.rejects(agent.runAgent(parameters), (error) => error.status === status);
}
const tools = [{ name: "alert", description: "Shows a text", parameters: { type: "object" } }];
await rejected({}, { tools }, 422);
await rejected({ initialState: { count: 1 } }, {}, 422);
await rejected({ headers: { Authorization: "Bearer wrong" } }, {}, 401);
await rejected({ url: `${url}?agent=nobody` }, {}, 400);
console.log("ok");
