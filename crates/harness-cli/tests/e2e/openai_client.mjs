// The official client for JavaScript against `harness serve`, with the shipped example.
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: process.env.TOKEN });
const question = "Where is my order 1042?";
const messages = [{ role: "user", content: question }];
const refund = "My socks from order 1040 have a hole. Please refund them.";

// Models.
const models = (await client.models.list()).data.map((model) => model.id);
assert.equal(models[0], "harness");
assert.equal((await client.models.retrieve(models[1])).id, models[1]);

// Chat completions, whole and streamed.
const whole = await client.chat.completions.create({ model: "harness", messages });
assert.match(whole.choices[0].message.content, /NP-77342/);
let text = "";
for await (const chunk of await client.chat.completions.create({ model: "harness", messages, stream: true })) {
  text += chunk.choices[0]?.delta?.content ?? "";
}
assert.match(text, /NP-77342/);
const helper = client.chat.completions.stream({ model: "harness", messages });
assert.match(await helper.finalContent(), /NP-77342/);

// Responses: whole, streamed, continued, and in a conversation.
const first = await client.responses.create({ model: "harness", input: question });
assert.match(first.output_text, /NP-77342/);
const types = [];
const stream = await client.responses.create({
  model: "harness", input: "And again?", previous_response_id: first.id, stream: true,
});
for await (const event of stream) types.push(event.type);
assert.equal(types[0], "response.created");
assert.equal(types.at(-1), "response.completed");
const accumulated = client.responses.stream({ model: "harness", input: question });
assert.match((await accumulated.finalResponse()).output_text, /NP-77342/);
const conversation = await client.conversations.create();
const answer = await client.responses.create({ model: "harness", input: question, conversation: conversation.id });
assert.equal(answer.conversation.id, conversation.id);

// Approvals: the refund is requested, and denied in the next response.
const asked = await client.responses.create({ model: "harness", input: refund });
const request = asked.output.find((item) => item.type === "mcp_approval_request");
const denied = await client.responses.create({
  model: "harness",
  previous_response_id: asked.id,
  input: [{ type: "mcp_approval_response", approval_request_id: request.id, approve: false, reason: "no" }],
});
assert.ok(!JSON.stringify(denied.output).includes("RF-1040"));

// A client that disconnects ends the run.
const aborted = new AbortController();
const streamed = await client.chat.completions.create(
  { model: "harness", messages, stream: true }, { signal: aborted.signal });
for await (const _ of streamed) aborted.abort();

// Errors are those of OpenAI.
const create = (body) => client.chat.completions.create({ model: "harness", messages, ...body });
await assert.rejects(create({ model: "gpt-5" }), (error) => error.status === 404 && error.code === "model_not_found");
await assert.rejects(create({ stop: "x" }), (error) => error.status === 400 && error.param === "stop");
await assert.rejects(
  async () => { for await (const _ of await create({ stream: true, messages: [{ role: "user", content: refund }] })); },
  (error) => error.code === "approval_required");
const stranger = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: "wrong" });
await assert.rejects(stranger.models.list(), (error) => error.status === 401);
console.log("ok");
