// A real, small model behind the protocol of chat completions, on a free loopback port.
//
//   node local_model.mjs PACKAGES MODEL.gguf
//
// PACKAGES is the folder in which node-llama-cpp is installed. Each line of output is a JSON object:
// {"url": …} once it listens, and for every request {"ended": "stop" | "length" | "aborted", "tokens": N}.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [packages, file] = process.argv.slice(2);
const entry = createRequire(path.join(packages, "package.json")).resolve("node-llama-cpp");
const { getLlama, LlamaChat, LlamaLogLevel } = await import(pathToFileURL(entry).href);

// One thread: on a busy machine several wait for each other most of the time.
const THREADS = 1;
const CONTEXT_TOKENS = 2048;
const ANSWER_TOKENS = 256;
const MOST_BODY = 4 << 20;

const llama = await getLlama({ gpu: false, build: "never", maxThreads: THREADS, logLevel: LlamaLogLevel.error });
const model = await llama.loadModel({ modelPath: path.resolve(file) });
const context = await model.createContext({ contextSize: CONTEXT_TOKENS, threads: THREADS });

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

// The context answers one request at a time; the others wait.
let before = Promise.resolve();
const inTurn = (work) => {
  const mine = before.then(work);
  before = mine.catch(() => {});
  return mine;
};

async function read(request) {
  const parts = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size > MOST_BODY) throw new Error("the request is too long");
    parts.push(part);
  }
  return JSON.parse(Buffer.concat(parts).toString("utf8"));
}

const textOf = (content) =>
  typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("");

function history(messages) {
  return messages.map(({ role, content }) => {
    const text = textOf(content);
    if (role === "assistant") return { type: "model", response: [text] };
    return role === "user" ? { type: "user", text } : { type: "system", text };
  });
}

async function complete(body, signal, onText) {
  const sequence = context.getSequence();
  const chat = new LlamaChat({ contextSequence: sequence });
  try {
    const { metadata } = await chat.generateResponse([...history(body.messages), { type: "model", response: [] }], {
      signal,
      stopOnAbortSignal: true,
      temperature: 0,
      maxTokens: Math.min(body.max_completion_tokens ?? body.max_tokens ?? ANSWER_TOKENS, ANSWER_TOKENS),
      onTextChunk: onText,
    });
    const { usedInputTokens: prompt, usedOutputTokens: completion } = sequence.tokenMeter.getState();
    const ended = { abort: "aborted", maxTokens: "length" }[metadata.stopReason] ?? "stop";
    return { ended, usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion } };
  } finally {
    chat.dispose();
    sequence.dispose();
  }
}

async function answer(request, response) {
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  const body = await read(request);
  const chunk = (choices, more) => ({
    id: "chat-1", object: "chat.completion.chunk", created: 1, model: body.model, choices, ...more,
  });
  const send = (event) => response.write(`data: ${JSON.stringify(event)}\n\n`);
  response.writeHead(200, { "content-type": "text/event-stream" });
  const { ended, usage } = await inTurn(() =>
    complete(body, gone.signal, (content) => send(chunk([{ index: 0, delta: { content }, finish_reason: null }]))),
  );
  say({ ended, tokens: usage.completion_tokens });
  if (ended === "aborted") return;
  send(chunk([{ index: 0, delta: {}, finish_reason: ended }]));
  send(chunk([], { usage }));
  response.end("data: [DONE]\n\n");
}

const server = createServer((request, response) => {
  if (request.method !== "POST" || !request.url.endsWith("/chat/completions")) {
    response.writeHead(404).end();
    return;
  }
  answer(request, response).catch((fault) => {
    if (!response.headersSent) response.writeHead(500, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { message: fault.message } }));
  });
});
server.listen(0, "127.0.0.1", () => say({ url: `http://127.0.0.1:${server.address().port}/v1` }));
