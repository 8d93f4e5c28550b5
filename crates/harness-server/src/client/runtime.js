/** Error response of the server. */
export class HarnessError extends Error {
  constructor(status, { kind, message, hint, path }) {
    super(hint ? `${message} (${hint})` : message);
    Object.assign(this, { name: "HarnessError", status, kind, hint, path });
  }
}

/** Client of one server. */
export class Harness {
  #url;
  #token;
  #fetch;

  constructor({ url, token, fetch = globalThis.fetch }) {
    this.#url = url.replace(/\/+$/, "");
    this.#token = token;
    this.#fetch = fetch.bind(globalThis);
  }

  async #send([method, template, hasBody], given, headers = {}) {
    const [path, rest] = filled(template, given);
    const body = hasBody ? rest.shift() : undefined;
    const { signal, ifMatch, ...query } = rest[0] ?? {};
    if (this.#token) headers.authorization = `Bearer ${this.#token}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    if (ifMatch !== undefined) headers["if-match"] = `"${ifMatch}"`;
    const known = Object.entries(query).filter(([, value]) => value !== undefined);
    const search = known.length > 0 ? `?${new URLSearchParams(known)}` : "";
    const init = { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) };
    const response = await this.#fetch(`${this.#url}${path}${search}`, init);
    if (response.ok) return response;
    const error = { kind: "http", message: `the server responded with ${response.status}` };
    const { error: told } = await response.json().catch(() => ({}));
    throw new HarnessError(response.status, told ?? error);
  }

  async #call(operation, given) {
    const text = await (await this.#send(operation, given)).text();
    return text ? JSON.parse(text) : undefined;
  }

  async *followThread(thread, { lastEventId, retryMs = 1000, ...options } = {}) {
    for (let last = lastEventId, failures = 0, isOver = false; ; ) {
      try {
        const headers = { accept: "text/event-stream" };
        if (last !== undefined) headers["last-event-id"] = String(last);
        const response = await this.#send(FOLLOW, [thread, options], headers);
        for await (const event of events(response.body)) {
          failures = 0;
          // Numbers restart with the server.
          if (event.event === "reset") last = undefined;
          if (event.id !== undefined) last = event.id;
          // The connection may be lost before `end`, and the next run is another one.
          isOver = options.until === "run_end" && ["run_ended", "run_failed"].includes(event.event);
          yield event;
          if (event.event === "end") return;
        }
      } catch (error) {
        const isTemporary = !(error instanceof HarnessError) || error.status >= 500 || error.status === 429;
        if (options.signal?.aborted || !isTemporary) throw error;
      }
      if (isOver) return;
      await pause(Math.min(retryMs * 2 ** failures++, 30_000), options.signal);
    }
  }

  static {
    for (const [name, operation] of Object.entries(OPERATIONS)) {
      Harness.prototype[name] = function (...given) { return this.#call(operation, given); };
    }
  }
}

function filled(template, given) {
  const rest = [...given];
  return [template.replace(/\{\w+\}/g, () => encodeURIComponent(rest.shift())), rest];
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
    function done() { signal?.removeEventListener("abort", stop); resolve(); }
    function stop() { clearTimeout(timer); reject(signal.reason); }
  });
}

// Server-sent events of a body. The connection is closed when the reader stops.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += value;
      const blocks = text.split("\n\n");
      text = blocks.pop();
      for (const block of blocks) {
        const event = parsed(block);
        if (event) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function parsed(block) {
  const field = (name) => block.split("\n").find((line) => line.startsWith(`${name}:`))?.slice(name.length + 1).trimStart();
  const [id, event, data] = ["id", "event", "data"].map(field);
  return event && data ? { id: id === undefined ? undefined : Number(id), event, data: JSON.parse(data) } : undefined;
}
