// Takes the pictures of the documentation: the chat, a trace, and the page of a server, which is used like a person would.
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const [executablePath, server, images] = process.argv.slice(2);
const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--hide-scrollbars"] });

const open = async (url, width, height) => {
  const page = await browser.newPage();
  await page.setViewport({ width, height, deviceScaleFactor: 1 });
  await page.goto(url);
  return page;
};
const local = name => pathToFileURL(resolve(name)).href;
const save = async (target, name) => {
  await target.screenshot({ path: join(images, name) });
  console.log(name);
};

const chat = await open(local("chat.html"), 900, 600);
await save(await chat.$("pre"), "chat.png");

await save(await open(local("trace.html"), 1100, 900), "trace.png");

const page = await open(server, 1100, 820);
const say = async (text, until) => {
  await page.type("#text", text);
  await page.keyboard.press("Enter");
  await page.waitForFunction(text => document.body.innerText.includes(text), {}, until);
};
await say("Where is my order 1042?", "Gothenburg");
await page.click("#new");
await say("Refund order 1042, the tent is torn.", "issue_refund");
await page.waitForFunction(() => document.querySelector("#approvals button"));
await save(page, "serve.png");
await browser.close();
