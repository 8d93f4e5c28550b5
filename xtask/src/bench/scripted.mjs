// The scripted model and tool of the agent-assistant driver alone, awaited as its loop awaits them: microseconds
// per iteration, the middle of nine repetitions by a warm process.
const usage = () => ({ inputTokens: 10, outputTokens: 5, costUnits: 0.001 });
const model = {
  async nextStep({ iteration }) {
    if (iteration >= 20) return { type: "final_answer", text: "done", usage: usage() };
    const calls = [{ id: `c${iteration}`, name: "tide", input: { n: iteration } }];
    return { type: "tool_request", calls, usage: usage() };
  },
};
const tools = {
  async execute(call) {
    return { callId: call.id, toolName: call.name, status: "success", output: `level ${call.input.n}` };
  },
};
let read = 0;
async function turns(count) {
  for (let turn = 0; turn < count; turn++) {
    for (let iteration = 1; iteration <= 20; iteration++) {
      const step = await model.nextStep({ iteration });
      if (step.type === "tool_request") read += (await tools.execute(step.calls[0])).output.length;
    }
  }
}
await turns(2000);
const samples = [];
for (let round = 0; round < 9; round++) {
  globalThis.gc?.();
  const from = performance.now();
  await turns(2000);
  samples.push(((performance.now() - from) * 1000) / 2000 / 20);
}
samples.sort((a, b) => a - b);
if (read === 0) throw new Error("no tool was called");
const peakRssMiB = process.resourceUsage().maxRSS / 1024;
console.log(JSON.stringify({ usPerIteration: samples[4], peakRssMiB }));
