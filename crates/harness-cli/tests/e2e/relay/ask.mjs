// The relay adapter of the source, on a running broker: node ask.mjs CONNECTION WORKER ORCHESTRATOR TEXT
import { AgentRelayClient } from '@agent-relay/sdk';
import { createAgentRelayExecutionAdapter } from '@agent-assistant/harness/agent-relay';

const [connectionPath, workerName, orchestratorName, text] = process.argv.slice(2);
const client = AgentRelayClient.connect({ connectionPath });
client.connectEvents();
const relay = {
  start: async () => {},
  sendMessage: (input) => client.sendMessage(input),
  onEvent: (listener) => client.onEvent(listener),
};
const adapter = createAgentRelayExecutionAdapter({
  relay, workerName, orchestratorName, channelId: 'specialists', timeoutMs: 30_000,
});
const result = await adapter.execute({
  assistantId: 'source', turnId: 'turn-1', threadId: 'thread-1',
  message: { id: 'message-1', text, receivedAt: new Date().toISOString() },
  instructions: { systemPrompt: 'Be brief.' },
});
console.log(JSON.stringify(result));
process.exit(0);
