// Requests from the description of the routes: a form for each operation, made when it is opened.
import { exact, hasToken, request, setToken } from "./api.js";
import { el, plain } from "./dom.js";

// Characters of a response that are shown.
const MOST = 200_000;

function field(name, input) {
  return el("label", {}, name, input);
}

// The request of a form: its method, its path with the parameters, its headers and its body.
function asked(operation, inputs, body) {
  let path = operation.dataset.path;
  const query = new URLSearchParams();
  const headers = {};
  for (const { name, place, input } of inputs) {
    if (place === "path") path = path.replace(`{${name}}`, encodeURIComponent(input.value));
    else if (input.value && place === "query") query.append(name, input.value);
    else if (input.value && place === "header") headers[name] = input.value;
  }
  const search = query.toString();
  return { method: operation.dataset.method, path: search ? `${path}?${search}` : path, headers, body: body?.value || undefined };
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function curl({ method, path, headers, body }) {
  const parts = ["curl -N", `-X ${method}`, quoted(new URL(path.replace(/^\//, ""), document.baseURI).href)];
  if (hasToken()) parts.push('-H "Authorization: Bearer $TOKEN"');
  for (const [name, value] of Object.entries(headers)) parts.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (body) parts.push("-H 'Content-Type: application/json'", `-d ${quoted(body)}`);
  return parts.join(" ");
}

// Shows a response as it arrives; whole JSON is indented.
async function run(made, output, signal) {
  output.textContent = "";
  const response = await request(made.method, made.path, { ...made, signal });
  const head = `${response.status} ${response.statusText}\n\n`;
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let part = await reader?.read(); part && !part.done; part = await reader.read()) {
    text += part.value;
    output.textContent = plain(head + text);
    if (text.length > MOST) {
      output.append("\n… cut");
      return reader.cancel();
    }
  }
  output.textContent = plain(head + indented(text));
}

function indented(text) {
  try {
    return JSON.stringify(exact(text), null, 2);
  } catch {
    return text;
  }
}

function form(operation) {
  const inputs = JSON.parse(operation.dataset.parameters).map(([name, place]) => ({
    name, place, input: el("input", { required: place === "path", autocomplete: "off", spellcheck: "false" }),
  }));
  const body = operation.dataset.body === undefined ? null : el("textarea", { rows: 6, spellcheck: "false" });
  if (body) body.value = operation.dataset.body;
  const token = el("input", { type: "password", autocomplete: "off" });
  const line = el("pre", { tabindex: 0, role: "group", "aria-label": "Command" });
  const output = el("pre", { tabindex: 0, role: "group", "aria-label": "Response", hidden: true });
  const send = el("button", { type: "submit" }, "Send");
  const stop = el("button", { type: "button", hidden: true }, "Stop");
  const whole = el("form", {},
    el("h3", {}, "Try it"),
    ...inputs.map(({ name, input }) => field(name, input)),
    body && field("body", body),
    field("bearer token, if the server requires one; kept for this tab", token),
    line, el("p", {}, send, stop), output);
  const show = () => { line.textContent = curl(asked(operation, inputs, body)); };
  whole.addEventListener("input", show);
  show();
  let aborter;
  stop.addEventListener("click", () => aborter?.abort());
  whole.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (token.value) setToken(token.value);
    show();
    aborter = new AbortController();
    send.disabled = true;
    output.hidden = stop.hidden = false;
    try {
      await run(asked(operation, inputs, body), output, aborter.signal);
    } catch (error) {
      output.append(error.name === "AbortError" ? "\n… stopped" : `\n${error.message}`);
    }
    send.disabled = false;
    stop.hidden = true;
  });
  return whole;
}

for (const operation of document.querySelectorAll("details[data-method]")) {
  operation.addEventListener("toggle", () => {
    if (operation.open && !operation.querySelector("form")) operation.querySelector(".body").append(form(operation));
  });
}
// A link to an operation opens it.
const linked = location.hash && document.getElementById(location.hash.slice(1));
if (linked?.tagName === "DETAILS") linked.open = true;
