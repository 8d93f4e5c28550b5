// The worker bridge of the source, on a running broker: node bridge.mjs CONNECTION WORKER
import { AgentRelayClient } from '@agent-relay/sdk';
import { createRelayWorkerBridge } from '@agent-assistant/harness/worker-bridge';

const [connectionPath, workerName] = process.argv.slice(2);
const client = AgentRelayClient.connect({ connectionPath });
client.connectEvents();
const runner = {
  id: 'echo',
  run: (input) => {
    console.log('request');
    const answer = { status: 'completed', text: `echo: ${input.prompt}` };
    return input.prompt.includes('never') ? new Promise(() => {}) : Promise.resolve(answer);
  },
};
const logger = { info() {}, warn: console.error, error: console.error };
await createRelayWorkerBridge({
  relay: client, channelId: 'specialists', workerName, runner, registerWorker: false, logger,
});
console.log('ready');
setInterval(() => {}, 1_000_000);
