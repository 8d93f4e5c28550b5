// Requests to the server. The bearer token is kept for this tab only.

const TOKEN = "harness.token";

export class ApiError extends Error {
  constructor(status, error) {
    super(error.hint ? `${error.message} (${error.hint})` : error.message);
    this.status = status;
    this.kind = error.kind;
  }
}

export const hasToken = () => sessionStorage.getItem(TOKEN) !== null;

export function setToken(token) {
  if (token) sessionStorage.setItem(TOKEN, token);
  else sessionStorage.removeItem(TOKEN);
}

// Numbers that a double cannot hold keep their text, so that arguments are shown as they are.
export function exact(text) {
  if (!JSON.rawJSON) return JSON.parse(text);
  return JSON.parse(text, (_, value, context) =>
    typeof value === "number" && context?.source && context.source !== String(value)
      ? JSON.rawJSON(context.source) : value);
}

// A response, whatever its status. The body is JSON text.
export function request(method, path, { body, signal, headers = {} } = {}) {
  const all = new Headers(headers);
  const token = sessionStorage.getItem(TOKEN);
  if (token) all.set("authorization", `Bearer ${token}`);
  if (body !== undefined) all.set("content-type", "application/json");
  return fetch(path.replace(/^\//, ""), { method, headers: all, signal, body });
}

async function send(method, path, body, signal) {
  const response = await request(method, path, { body: body === undefined ? undefined : JSON.stringify(body), signal });
  if (response.ok) return response;
  let error = { message: `the server responded with ${response.status}` };
  try { error = (await response.json()).error ?? error; } catch { /* no JSON */ }
  throw new ApiError(response.status, error);
}

export async function fetchText(path) {
  return (await send("GET", path)).text();
}

export async function call(method, path, body) {
  const text = await (await send(method, path, body)).text();
  return text ? exact(text) : null;
}

// Follows server-sent events until the stream ends or is aborted. After `opened`, no change is missed.
export async function follow(path, signal, receive, opened) {
  const reader = (await send("GET", path, undefined, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  opened?.();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    let end;
    while ((end = text.indexOf("\n\n")) >= 0) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart()).join("\n");
      const name = lines.find((line) => line.startsWith("event:"))?.slice(6).trim();
      const id = lines.find((line) => line.startsWith("id:"))?.slice(3).trim();
      if (name && data) receive(name, exact(data), id);
    }
  }
}
