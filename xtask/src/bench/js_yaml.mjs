// Times parsing one YAML file: the least and the middle of forty parses by a warm process, in milliseconds.
import { readFileSync } from "node:fs";
import { load } from "js-yaml";

const text = readFileSync(process.argv[2], "utf8");
const samples = [];
for (let round = 0; round < 60; round++) {
  const from = process.hrtime.bigint();
  load(text);
  samples.push(Number(process.hrtime.bigint() - from) / 1e6);
}
const warm = samples.slice(20).sort((a, b) => a - b);
console.log(JSON.stringify({ best_ms: warm[0], ms: warm[warm.length >> 1] }));
