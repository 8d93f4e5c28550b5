// Follows a run on the trace page of a server in Chromium: prints `running` when the page shows the run in progress, and
// at its end what was found as one line of JSON.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";

const [executablePath, server] = process.argv.slice(2);
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage();
const problems = [];
page.on("console", message => { if (message.type() === "error") problems.push(message.text()); });
page.on("pageerror", error => problems.push(error.message));
page.on("request", request => { if (!request.url().startsWith(server)) problems.push(`request of ${request.url()}`); });
await page.setViewport({ width: 1200, height: 900 });
const shot = async name => { if (process.env.SHOTS) await page.screenshot({ path: `live-${name}.png`, fullPage: true }); };
const says = (selector, text) => page.waitForFunction((selector, text) =>
  [...document.querySelectorAll(selector)].some(element => element.textContent.includes(text)), {}, selector, text);

await page.goto(server);
await page.type("#text", "Look at it.");
await page.keyboard.press("Enter");
await page.waitForSelector("#trace:not([hidden])");
await page.waitForSelector("#abort:not([hidden])");
await shot("chat");
await page.click("#trace");
await says("details.run[open] summary .badge", "running");
await says("ol.story li:nth-of-type(3)", "desk");
const widths = await page.evaluate(() => [...document.querySelectorAll(".track .bar")].map(bar => bar.getBoundingClientRect().width));
await page.click("details.request summary");
await page.type("#q", "look");
await shot("running");
console.log("running");

await says("details.run summary .badge", "completed");
await says("main", "Here it is.");
const kept = await page.evaluate(() => ({
  opened: document.querySelector("details.request").open,
  search: document.getElementById("q").value,
  hits: document.getElementById("hits").textContent,
  target: document.querySelectorAll("details.run").length,
}));
await page.evaluate(axe);
const { violations } = await page.evaluate(() => globalThis.axe.run());
const faults = violations.map(({ id, nodes }) => `${id}: ${nodes.map(node => node.html.slice(0, 120)).join(" ")}`);
await page.keyboard.press("Escape");
await shot("ended");
await page.click("#thread");
await page.waitForFunction(() => document.body.innerText.includes("Here it is."));
console.log(JSON.stringify({ problems, faults, widths, ...kept }));
await browser.close();
