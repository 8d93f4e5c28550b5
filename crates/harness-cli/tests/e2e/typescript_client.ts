// Uses the client like a program: errors, approvals, steering, an abort, and a stream that continues after lost connections
// and a restart. Prints `restart` when it wants that of the server, and `ok` at its end.
import { Harness, HarnessError, type Message, type NumberedEvent, type UserBlock } from "./client.js";

function assert(so: boolean, what: string): asserts so {
  if (!so) throw new Error(`not so: ${what}`);
}

const url = "http://localhost:8787";
const client = new Harness({ url, token: "TOKEN" });
const thread = await client.createThread({ id: "ts", user: "ada", context: {}, metadata: { ticket: 17 } });
assert(thread.status.state === "idle" && thread.user === "ada" && thread.metadata?.ticket === 17, "the thread is new");
assert((await client.listThreads({ limit: 10 })).threads.some(({ id }) => id === "ts"), "the thread is listed");

// Errors have their status and kind.
const error = async (work: Promise<unknown>) => work.then(() => undefined, (error: unknown) => error);
const twice = await error(client.createThread({ id: "ts" }));
assert(twice instanceof HarnessError && twice.status === 409 && twice.kind === "server.thread_exists", String(twice));
const stranger = await error(new Harness({ url, token: "wrong" }).health().then(() => new Harness({ url }).listThreads()));
assert(stranger instanceof HarnessError && stranger.status === 401, String(stranger));

// A whole run.
const report = await client.prompt("ts", { text: "hi" }, { wait: "true" });
assert("outcome" in report && report.text === "You said: hi", "the report has the answer");
const { messages } = await client.listMessages("ts");
const texts = (of: Message): string[] =>
  "content" in of ? (of.content ?? []).flatMap((block) => (block.type === "text" ? [block.text] : [])) : [];
const [asked, answer] = messages;
assert(asked?.role === "user" && texts(asked)[0] === "hi", "the transcript has typed messages");
assert(answer?.role === "assistant" && texts(answer)[0] === "You said: hi" && answer.stopReason === "stop", "and blocks");
const picture: UserBlock = { type: "image", mimeType: "image/png", data: "aGk=" };
// @ts-expect-error: a message of a user has no calls.
const noBlock: UserBlock = { type: "toolCall", id: "c", name: "pay", arguments: {} };
assert(picture.type === "image" && noBlock.type !== "text", "blocks of users are typed");

// Decides on each call that is announced, and returns the answer.
async function decide(text: string, decision: "granted" | "denied"): Promise<string> {
  await client.prompt("ts", { text });
  for await (const { event, data } of client.followThread("ts", { from: "turn", until: "run_end" })) {
    if (event === "approvals" && data.pending > 0) {
      const { approvals } = await client.listApprovals("ts");
      assert(approvals.length === 1, "an announced call is listed");
      for (const { id, digest } of approvals) await client.answerApproval("ts", id, { decision, digest });
    }
    if (event === "run_ended") return data.report.text;
  }
  throw new Error("the stream ended before the run");
}
assert((await decide("pay and deny", "denied")).includes("Denied"), "the call is denied");
assert((await decide("pay and allow", "granted")) === "Result: paid", "the call is granted");

// Steering, with the model stopped in the middle of its answer.
const open = () => fetch("MODEL", { method: "POST", headers: { "content-type": "application/json" }, body: '{"open":true}' });
await client.prompt("ts", { text: "look" });
for await (const event of client.followThread("ts", { from: "turn", kind: "text", until: "run_end" })) {
  if (event.event !== "text") continue;
  await client.steer("ts", { text: "hurry" });
  assert((await client.listQueue("ts")).entries[0]?.delivery === "between_rounds", "the message is queued");
  await open();
  break;
}
assert((await client.getResponse("ts"))?.text === "You said: hurry", "the message is delivered");

// An abort.
await client.prompt("ts", { text: "hang" });
assert((await client.abort("ts", { reason: "enough" }, { wait: "true" })).stopped, "the run is stopped");

// A connection that is lost after each event: every event arrives once.
const cut: typeof fetch = async (input, init) => {
  const response = await fetch(input, init);
  if (!String(input).includes("/events")) return response;
  const reader = response.body!.getReader();
  let bytes: Uint8Array = new Uint8Array();
  const first = new TextDecoder();
  let text = "";
  while (!text.includes("\n\n")) {
    const { value, done } = await reader.read();
    if (done) break;
    bytes = new Uint8Array([...bytes, ...value]);
    text += first.decode(value, { stream: true });
  }
  await reader.cancel();
  return new Response(text.slice(0, text.indexOf("\n\n") + 2), { headers: response.headers });
};
const all: NumberedEvent[] = [];
const last = await client.getThread("ts");
await client.prompt("ts", { text: "bye" }, { wait: "true" });
for await (const event of client.followThread("ts", { from: last.nextSeq, until: "run_end" })) all.push(event);
const pieces: NumberedEvent[] = [];
const flaky = new Harness({ url, token: "TOKEN", fetch: cut });
for await (const event of flaky.followThread("ts", { from: last.nextSeq, until: "run_end", retryMs: 1 })) pieces.push(event);
assert(all.pop()?.event === "end", "the stream ends with the run");
assert(JSON.stringify(pieces) === JSON.stringify(all) && all.length > 5, "each event arrives once, in order");

// A restart: the stream ends, and is followed again.
const before = (await client.getThread("ts")).nextSeq;
const stream = client.followThread("ts", { retryMs: 20 });
const ended = (async () => { for await (const { event, data } of stream) if (event === "end") return data.reason; })();
console.log("restart");
assert((await ended) === "closed", "the stream ends with the server");
let reset = false;
for await (const event of client.followThread("ts", { lastEventId: before - 1, retryMs: 20 })) {
  if (event.event === "reset") {
    reset = true;
    await client.prompt("ts", { text: "hi" });
  }
  if (event.event === "run_ended") break;
}
assert(reset, "the new numbers are announced");
assert((await client.getThread("ts")).user === "ada", "the user is kept");

// A request that is stopped.
const stopped = await error(client.getThread("ts", { signal: AbortSignal.abort() }));
assert(stopped instanceof DOMException && stopped.name === "AbortError", String(stopped));
console.log("ok");
