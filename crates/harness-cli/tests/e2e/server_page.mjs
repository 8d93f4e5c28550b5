// Uses the page of a server in Chromium like a person: signs in, chats, decides on calls, steers, aborts, and stays while
// the server restarts. Prints `stop` and `start` when it wants that of the server, and `ok` at its end.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";

const [executablePath, server, model, token] = process.argv.slice(2);
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const views = [
  { name: "light", width: 1100, height: 820, scheme: "light" },
  { name: "dark", width: 1100, height: 820, scheme: "dark" },
  { name: "phone", width: 390, height: 780, scheme: "light" },
];

const page = await browser.newPage();
// Responses with an error are expected while nobody is signed in, and while the server is down.
const expected = /Failed to load resource/;
const problems = [];
page.on("console", message => { if (message.type() === "error" && !expected.test(message.text())) problems.push(message.text()); });
page.on("pageerror", error => problems.push(error.message));
page.on("request", request => { if (new URL(request.url()).origin !== server) problems.push(`request of ${request.url()}`); });
await page.evaluateOnNewDocument(() => {
  globalThis.refused = [];
  document.addEventListener("securitypolicyviolation", event => globalThis.refused.push(`${event.violatedDirective} ${event.blockedURI}`));
});

// What the browser says about the page in each view.
async function look(name) {
  for (const view of views) {
    await page.setViewport({ width: view.width, height: view.height });
    await page.emulateMediaFeatures([
      { name: "prefers-color-scheme", value: view.scheme }, { name: "prefers-reduced-motion", value: "reduce" }]);
    const place = `${name}, ${view.name}`;
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, `${place}: too wide`);
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/${name}-${view.name}.png` });
    assert.deepEqual(await page.evaluate(() => globalThis.refused ?? []), [], `${place}: refused by the policy`);
    // Evaluated by the debugger, which the policy of the page does not bind.
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(node => node.html.slice(0, 160)).join(" ")}`);
    assert.deepEqual(found, [], `${place}: axe-core`);
  }
  await page.setViewport({ width: views[0].width, height: views[0].height });
}

async function until(so, ...values) {
  try { await page.waitForFunction(so, { timeout: 20_000 }, ...values); }
  catch { throw new Error(`not so: ${so} ${values}\n${await page.evaluate(() => document.body.innerText)}`); }
}
const sees = text => until(text => document.body.innerText.includes(text), text);
const type = async (text, key = "Enter") => { await page.type("#text", text); await page.keyboard.press(key); };
const state = wanted => until(wanted => document.getElementById("state").textContent === wanted, wanted);
const idle = () => state("");
const transcript = () => page.$$eval("#log > .message", nodes => nodes.map(node => {
  const copy = node.cloneNode(true);
  copy.querySelector(".agent")?.remove();
  return copy.textContent;
}));
const goOn = () => fetch(model, { method: "POST", headers: { "content-type": "application/json" }, body: '{"open":true}' });
async function api(method, path, body) {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(server + path, { method, headers, body: body && JSON.stringify(body) });
  assert.ok(response.ok, `${method} ${path}: ${response.status}`);
  return response.json();
}

// Sign in, first with a wrong token.
await page.goto(server);
await page.waitForSelector("#login[open]");
await look("login");
const signIn = async text => { await page.type("#token", text); await page.keyboard.press("Enter"); };
await signIn("not-the-token-of-this-server-000");
await sees("The token is invalid.");
await signIn(token);
await until(() => !document.getElementById("login").open && !document.getElementById("sign-out").hidden);
assert.deepEqual(await page.evaluate(() => [localStorage.length, document.cookie]), [0, ""], "the token is kept for the tab only");
await look("empty");

// A new thread: the answer appears while the model writes it.
await type("hello");
await sees("One two");
await state("Working…");
assert.ok(!(await page.evaluate(() => document.body.innerText)).includes("five"));
await look("stream");
await goOn();
await sees("five");
await idle();
assert.deepEqual(await transcript(), ["hello", "One two three four five."]);
const thread = decodeURIComponent(new URL(page.url()).hash.slice(1));
await until(id => document.querySelector("#threads [aria-current]")?.innerText.trim() === "hello" && location.hash.includes(id), thread);

// A call is decided on with its full arguments in view.
const approve = async (text, button) => {
  await type(text);
  await page.waitForSelector(".approval");
  await state("Waiting for approval");
  const shown = await page.$eval(".approval pre", node => node.textContent);
  // Every character and digit: a number that a double cannot hold, HTML, and a character that reorders text.
  const note = `<b>bold</b>\\u202e ${"long ".repeat(40)}`;
  assert.equal(shown, `{\n  "amount": 12345678901234567890,\n  "note": "${note}"\n}`);
  return page.$(`.approval button.${button}`);
};
let button = await approve("pay and deny", "danger");
await look("approval");
await page.type(".approval input", "too much");
await button.click();
await sees("Result: Denied: too much");
await idle();
button = await approve("pay and allow", "primary");
await button.click();
await sees("Result: paid");
await idle();
assert.equal((await page.$$(".approval")).length, 0);
assert.deepEqual(await page.$$eval("details.call .result", nodes => nodes.map(node => node.textContent)), ["denied", "done"]);

// A call of a sub-agent, which is in no event of the thread.
button = await approve("ask the scout", "primary");
await button.click();
await sees("The scout has paid.");
await idle();
assert.equal((await page.$$(".approval")).length, 0);

// Abort.
await type("hang");
await state("Working…");
await page.keyboard.press("Escape");
await idle();
await sees("Aborted");

// Steer: the message is queued, and delivered before the next model call.
await type("look");
await sees("Looking");
await type("Only the blue ones.");
await sees("next step");
await look("queue");
await goOn();
await sees("You said: Only the blue ones.");
await idle();
assert.equal((await transcript()).filter(text => text === "Only the blue ones.").length, 1);
await until(() => document.getElementById("queue").hidden);

// Stay while the server restarts in the middle of an answer.
await type("hello");
await sees("One two");
console.log("stop");
await sees("The server cannot be reached. Retrying…");
await look("offline");
console.log("start");
// A response that the page received late may have hidden the problem before the server is back.
while (!(await fetch(`${server}/v1/health`).catch(() => null))?.ok) await new Promise(resume => setTimeout(resume, 100));
await until(() => document.getElementById("problem").hidden);
await idle();
await api("POST", `/v1/threads/${thread}/prompt?wait`, { text: "back" });
await sees("You said: back");
await idle();
const { messages } = await api("GET", `/v1/threads/${thread}/messages?limit=1000`);
const textOf = message => (message.content ?? []).map(block => block.text ?? "").join("").replaceAll("**", "").trim();
const said = messages.filter(message => message.role !== "toolResult").map(textOf).filter(text => text);
assert.deepEqual(await transcript(), said, "each message is shown once");
const live = await transcript();
await page.reload();
await sees("You said: back");
assert.deepEqual(await transcript(), live, "a new page shows the same");
await look("thread");

// The list of threads on a phone, and a second thread.
await page.setViewport({ width: 390, height: 780 });
await page.click("#menu");
await until(() => document.body.classList.contains("open"));
await look("menu");
await page.setViewport({ width: 390, height: 780 });
await page.click("#new");
await until(() => !document.body.classList.contains("open") && location.hash === "");
await page.setViewport({ width: 1100, height: 820 });
await type("back");
await sees("You said: back");
await idle();
await until(() => document.querySelectorAll("#threads li").length === 2);
await page.goBack();
await until(id => location.hash === `#${id}` && document.body.innerText.includes("Only the blue ones."), thread);

// The description of the routes.
await page.goto(`${server}/docs`);
await sees("/v1/threads/{thread}/prompt");
assert.equal((await page.$$("details:not([id^=type-])")).length, Object.values((await api("GET", "/openapi.json")).paths).flatMap(Object.keys).length);
await page.click("#prompt summary");
await until(() => document.querySelector("#prompt").open && document.body.innerText.includes("JSON Schema that the answer must match"));
await page.type("#prompt form label:first-of-type input", thread);
await page.$eval("#prompt form textarea", area => { area.value = JSON.stringify({ text: "from the page" }); });
await page.$$eval("#prompt form label", labels => { labels.find(label => label.textContent === "wait").querySelector("input").value = "true"; });
await page.click("#prompt form button[type=submit]");
await until(() => /^200 /.test(document.querySelector("#prompt [aria-label=Response]").textContent)
  && document.querySelector("#prompt [aria-label=Response]").textContent.includes("You said: from the page"));
assert.match(await page.$eval("#prompt [aria-label=Command]", line => line.textContent),
  new RegExp(`^curl -N -X POST '${server}/v1/threads/${thread}/prompt\\?wait=true' -H "Authorization: Bearer \\$TOKEN" `));
await look("docs");

// The example of the documentation, on a page of this origin without a policy.
await page.goto(`${server}/v1/health`);
const example = (await readFile("example.html", "utf8")).replaceAll("http://localhost:8787", server).replace("TOKEN", token);
await page.setContent(example, { waitUntil: "networkidle0" });
await page.type("input", "from the example");
await page.click("button");
await sees("You said: from the example");

// Sign out.
await page.goto(server);
await page.waitForSelector("#sign-out:not([hidden])");
await page.click("#sign-out");
await page.waitForSelector("#login[open]");
assert.equal(await page.evaluate(() => sessionStorage.length), 0);
assert.deepEqual(problems, []);
await browser.close();
console.log("ok");
