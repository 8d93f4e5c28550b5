// Reads graphs from a JSON file, and prints for each the agents and handoffs that Mermaid found in it.
import { readFile } from "node:fs/promises";
import { JSDOM } from "jsdom";

// Mermaid cleans labels with a library that needs a document.
globalThis.window = new JSDOM("").window;
globalThis.document = window.document;
const { default: mermaid } = await import("mermaid");

for (const { name, text } of JSON.parse(await readFile(process.argv[2], "utf8"))) {
  try {
    await mermaid.parse(text);
  } catch (fault) {
    throw new Error(`graph of ${name}: ${fault.message}`);
  }
  const { db } = await mermaid.mermaidAPI.getDiagramFromText(text);
  console.log(JSON.stringify({ name, agents: db.getVertices().size, handoffs: db.getEdges().length }));
}
