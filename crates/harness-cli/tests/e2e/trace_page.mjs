// Opens trace pages in Chromium, light, dark and narrow, and prints what was found as one line of JSON per page and view.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const [executablePath, ...pages] = process.argv.slice(2);
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });

const views = [
  { name: "light", width: 1200, height: 900, scheme: "light" },
  { name: "dark", width: 1200, height: 900, scheme: "dark" },
  { name: "narrow", width: 400, height: 800, scheme: "light" },
];

for (const path of pages) {
  for (const view of views) {
    const page = await browser.newPage();
    const problems = [];
    page.on("console", message => { if (message.type() === "error") problems.push(message.text()); });
    page.on("pageerror", error => problems.push(error.message));
    page.on("request", request => { if (!request.url().startsWith("file:")) problems.push(`request of ${request.url()}`); });
    await page.setViewport({ width: view.width, height: view.height });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: view.scheme }]);
    await page.goto(pathToFileURL(path).href);
    await page.keyboard.press("e");
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    if (process.env.SHOTS) await page.screenshot({ path: `${path}.${view.name}.png`, fullPage: true });
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    const faults = violations.map(({ id, nodes }) => `${id}: ${nodes.map(node => node.html.slice(0, 120)).join(" ")}`);
    console.log(JSON.stringify({ path, view: view.name, problems, wide, faults, ...await keys(page) }));
    await page.close();
  }
}
await browser.close();

// Uses the page with keys: what was open after each.
async function keys(page) {
  await page.keyboard.press("c");
  const closed = await page.evaluate(() => document.querySelectorAll("main details[open]").length === 0);
  await page.keyboard.press("j");
  const visited = await page.evaluate(() => location.hash);
  await page.keyboard.press("Enter");
  const opened = await page.evaluate(() => {
    const block = document.getElementById(location.hash.slice(1)).closest("[data-block]");
    return block.matches("details[open]") || block.querySelector("details[open]") !== null;
  });
  await page.keyboard.press("?");
  const help = await page.evaluate(() => document.getElementById("keys").open);
  await page.keyboard.press("Escape");
  await page.keyboard.press("c");
  const link = await page.evaluate(() => {
    const inner = [...document.querySelectorAll("[id*='message-']")].pop();
    if (!inner) return true;
    location.hash = inner.id;
    return new Promise(done => setTimeout(() => done(inner.getClientRects().length > 0), 100));
  });
  await page.keyboard.press("/");
  await page.keyboard.type("no such word anywhere");
  const hidden = await page.evaluate(() => [...document.querySelectorAll("li[data-block]")].every(block => block.hidden));
  await page.keyboard.press("Escape");
  const shown = await page.evaluate(() => [...document.querySelectorAll("li[data-block]")].every(block => !block.hidden));
  return { closed, visited, opened, help, link, search: hidden && shown };
}
