// Client of `harness serve`, generated from its description. Do not edit.

/** Error response of the server. */
export class HarnessError extends Error {
  /** HTTP status. */
  readonly status: number;
  /** Stable code. */
  readonly kind: string;
  /** Suggested fix. */
  readonly hint?: string;
  /** Path of the invalid field in the request body. */
  readonly path?: string;
}

/** A server. */
export interface HarnessOptions {
  /** URL of the server, for example `http://localhost:8787`. */
  url: string;
  /** Bearer token, if the server requires one. */
  token?: string;
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch;
}

/** Stops a request. */
export interface RequestOptions {
  signal?: AbortSignal;
}

/** Event of a thread with its number. */
export type NumberedEvent = ThreadEvent & { id?: number };

/** Client of one server. A newer server may send blocks, events and fields that these types do not have. Numbers beyond 2^53 lose digits, as in all of JavaScript. */
export class Harness {
  constructor(options: HarnessOptions);

  /**
   * Follows the events of a thread until the event `end`. A lost connection is opened again after the last event; after a restart
   * of the server, the event `reset` is first.
   */
  followThread(thread: string, options?: RequestOptions & {
    /** First event: `live` (default), `turn`, `replay` or a number. */
    from?: string | number;
    kind?: "full" | "text" | "reasoning" | "items";
    /** Ends the stream with the next run. */
    until?: "run_end";
    /** Last event that was received before. */
    lastEventId?: number;
    /** Time before the first attempt to connect again, in milliseconds. Doubles up to 30 s. Default: 1000. */
    retryMs?: number;
  }): AsyncGenerator<NumberedEvent, void, undefined>;

  /** Stops the current run, or ends parked calls. Finished work is kept; queued messages start the next run. */
  abort(thread: string, body?: AbortThread | null, options?: RequestOptions & {
    /** `true` responds when the run has ended. Default: `false`, which responds immediately. */
    wait?: "true" | "false";
  }): Promise<Aborted>;

  /** Decides on a call: `granted`, `edited` with other arguments, `denied` with a reason, or `later`.
   * For a parked call, the thread resumes and the decision is applied when the call is pending
   * again. */
  answerApproval(thread: string, approval: string, body: Answer, options?: RequestOptions & {
    /** The digest of the call, in double quotes */
    ifMatch?: string;
  }): Promise<undefined>;

  /** Removes a message from the queue before it is delivered. */
  cancelEntry(thread: string, entry: string, options?: RequestOptions): Promise<EntryView>;

  /** Compacts the transcript of an idle thread permanently. Responds when it is done. */
  compactThread(thread: string, body?: Compact | null, options?: RequestOptions): Promise<Compacted>;

  /** Continues at the end of the transcript: settles unfinished and pending calls, and calls the
   * model. */
  continueRun(thread: string, options?: RequestOptions & {
    /** `true` responds with the report at the end of the run; the run continues if the client
     * disconnects. Default: `false`, which responds when the run has started. */
    wait?: "true" | "false";
  }): Promise<ReportView | Started>;

  /** Creates a thread and its session. */
  createThread(body?: CreateThread | null, options?: RequestOptions): Promise<ThreadView>;

  /** Deletes a thread and its session: its run is aborted, its queue is discarded, and its streams end. */
  deleteThread(thread: string, options?: RequestOptions): Promise<undefined>;

  /** Changes the content or the position of a queued message. */
  editEntry(thread: string, entry: string, body: EditEntry, options?: RequestOptions): Promise<Queue>;

  /** Returns the JSON Schema of the events of a thread's stream. Requires no authentication. */
  eventSchema(options?: RequestOptions): Promise<Record<string, unknown>>;

  /** Queues a message for delivery after the current run. An idle thread stays idle. */
  followUp(thread: string, body: Say, options?: RequestOptions): Promise<Queued>;

  /** Returns the result of the messages so far: responds when the queue is empty, or when a run did
   * not complete; immediately if no run is in progress. */
  getResponse(thread: string, options?: RequestOptions): Promise<ReportView | undefined>;

  /** Returns the status of a thread, without loading its transcript. */
  getStatus(thread: string, options?: RequestOptions): Promise<StatusView>;

  /** Returns a thread. */
  getThread(thread: string, options?: RequestOptions): Promise<ThreadView>;

  /** Returns whether the server is up. Requires no authentication. */
  health(options?: RequestOptions): Promise<Health>;

  /** Interrupts the current run and starts the next run with the message. */
  interrupt(thread: string, body: Say, options?: RequestOptions): Promise<Queued>;

  /** Lists the pending calls in the runs of all threads. Parked calls are listed by their threads. */
  listAllApprovals(options?: RequestOptions): Promise<ApprovalList>;

  /** Lists the pending calls of a thread: those held by its run or, while it is idle, those that an earlier run
   * left open. */
  listApprovals(thread: string, options?: RequestOptions): Promise<ApprovalList>;

  /** Returns a part of the transcript, including messages of the current run. */
  listMessages(thread: string, options?: RequestOptions & {
    /** Position of the first message, from 0. Default: the last page. */
    from?: number;
    /** Number of entries, at most 1,000. Default: 100. */
    limit?: number;
  }): Promise<MessageList>;

  /** Lists the queued messages in the order of their delivery. */
  listQueue(thread: string, options?: RequestOptions): Promise<Queue>;

  /** Lists the threads of this server and of stored sessions, sorted by id. A page of a filtered list has what
   * the next 1,000 threads have, so it may be short or empty: the list ends with a page without `next`. */
  listThreads(options?: RequestOptions & {
    /** `next` of the previous page. */
    after?: string;
    /** Number of entries, at most 1,000. Default: 100. */
    limit?: number;
    /** Only threads of this user. */
    user?: string;
    /** Only threads in this state. */
    state?: ThreadState;
    /** Only threads whose `metadata` has these entries: a JSON object, such as `{"ticket":7}`. */
    metadata?: string;
  }): Promise<ThreadList>;

  /** Returns this description. Requires no authentication. */
  openapi(options?: RequestOptions): Promise<Record<string, unknown>>;

  /** Sends a prompt to an idle thread and starts a run. */
  prompt(thread: string, body: StartRun, options?: RequestOptions & {
    /** `true` responds with the report at the end of the run; the run continues if the client
     * disconnects. Default: `false`, which responds when the run has started. */
    wait?: "true" | "false";
  }): Promise<ReportView | Started>;

  /** Sends a message to a thread. An idle thread starts a run with it. */
  sendMessage(thread: string, body: Send, options?: RequestOptions): Promise<Queued>;

  /** Steers the current run: the message is delivered before its next model call. An idle thread stays idle. */
  steer(thread: string, body: Say, options?: RequestOptions): Promise<Queued>;
}

/** Reason for stopping a run. */
export type AbortThread = {
  /** Actor named in the report of the run. Default: `client`. */
  reason?: string | null;
};

/** Result of an abort. */
export type Aborted = {
  /** Whether a run was aborted. */
  stopped: boolean;
};

/** Decision on a call. */
export type Answer = {
  /** Arguments of the call; required with `edited`. */
  arguments?: Record<string, unknown> | null;
  decision: Decided;
  /** Digest of the call, from the list of approvals. May be sent as `If-Match` instead. */
  digest?: string | null;
  /** Reason for the model; allowed with `denied`. */
  reason?: string | null;
};

/** Pending calls. */
export type ApprovalList = {
  /** The calls in the order in which they were held. */
  approvals: ApprovalView[];
};

/** A pending call. */
export type ApprovalView = {
  /** Agent that proposed the call. */
  agent: string;
  /** Arguments of the call. */
  arguments: Record<string, unknown>;
  /** Id of the call. */
  callId: string;
  /** Binds a decision to this call, with these arguments, in this run. */
  digest: string;
  /** Id of the approval, used in the path of the decision. */
  id: string;
  /** Call of the parent agent; present if the agent is a sub-agent. */
  parentCall?: string | null;
  /** Reason for the approval; absent if it is not known any more. */
  reason?: string | null;
  /** The run that holds it. */
  run?: string | null;
  /** `held` in a run that awaits the decision, or `parked` in the session by an earlier run: the
   * decision resumes the thread. */
  state: string;
  /** Id of its thread. */
  thread: string;
  /** Name of the tool. */
  tool: string;
};

/** Options of a compaction. */
export type Compact = {
  /** Content that a summary must keep. */
  instructions?: string | null;
};

/** Result of a compaction. */
export type Compacted = {
  /** Whether the transcript was compacted. */
  compacted: boolean;
  note?: CompactionNote | null;
};

/** Description of a compaction, for events, sessions and metrics. */
export type CompactionNote = {
  /** Tokens of the request before. */
  tokensBefore: number;
  /** Tokens of the request after. */
  tokensAfter: number;
  /** Target in tokens. */
  target: number;
  /** Number of the plan in its thread, starting at 1. */
  planVersion: number;
  /** Number of changed groups per action: `clear`, `collapse`, `externalize`, `summarize`, `drop`, `truncate` or `select`. */
  actions: ([string, number])[];
  /** Extent. */
  level: CompactionLevel;
  /** Summary, if any. */
  summary?: string;
  /** First unchanged message of the transcript after the shortened part. */
  firstKept: number;
};

/** Extent of a compaction. */
export type CompactionLevel = "none" | "optimized" | "compressed" | "destructive";

/** A new thread. */
export type CreateThread = {
  /** Values laid over the defaults of the descriptor's `context`, up to 16 KiB. Default: those of the server. */
  context?: Record<string, unknown> | null;
  /** Its name: up to 128 letters, digits, `-`, `_` and `.`. Default: one of the server's. */
  id?: string | null;
  /** Data of the caller, up to 16 KiB: part of the `origin` of events and calls, never seen by models. */
  metadata?: Record<string, unknown> | null;
  /** User of its runs, up to 256 characters: memory with the scope `user` belongs to them. Default: that of the server. */
  user?: string | null;
};

/** Kind of decision. */
export type Decided = "granted" | "edited" | "denied" | "later";

/** Changes to a queued message. */
export type EditEntry = {
  /** New content, as blocks. */
  content?: UserBlock[] | null;
  /** New position in the queue, from 0. */
  place?: number | null;
  /** New text. */
  text?: string | null;
};

/** An entry of the queue. */
export type EntryView = {
  /** Time of delivery. */
  delivery: Delivery;
  /** Id of the entry. */
  id: string;
  /** Queued message. */
  message: Message;
  /** When it was queued, in milliseconds since 1970. */
  queuedAt: number;
  /** `waiting`, or `delivering` if a run has accepted it but not yet added it to the transcript. */
  state: string;
  /** Whether an idle thread starts a run with it. */
  wakes: boolean;
};

/** Time of delivery to a busy thread. */
export type Delivery = "next_turn" | "between_rounds" | "interrupt";

/** Health of the server. */
export type Health = {
  /** `ok`. */
  status: string;
  /** Version of the server. */
  version: string;
};

/** Message of a transcript, tagged by `role`. */
export type Message = (SystemMessage & {
  role: "system";
}) | (UserMessage & {
  role: "user";
}) | (AssistantMessage & {
  role: "assistant";
}) | (ToolResultMessage & {
  role: "toolResult";
}) | (CustomMessage & {
  role: "custom";
});

/** Whole response of a model. */
export type AssistantMessage = {
  /** Blocks in order of arrival. */
  content: Block[];
  /** Agent of the turn. */
  agent?: AgentId;
  /** Usage. */
  usage?: Usage;
  /** Reason why the model stopped. */
  stopReason: FinishReason;
  /** Time in milliseconds since 1970. */
  timestamp?: number;
  /** Message of an error, with `stop_reason` `error`. */
  errorMessage?: string;
  /** Stable code of the error. */
  errorCode?: string;
  /** Protocol. */
  protocol?: string;
  /** Provider. */
  provider?: string;
  /** Requested model. */
  model?: ModelName;
  /** Model that responded. */
  responseModel?: string;
  /** Provider's id of the response. */
  responseId?: string;
  /** Notes of the adapter. */
  diagnostics?: unknown[];
  /** Provider's further data; some of it must be sent back. */
  providerMetadata?: unknown;
};

/** Id of an agent: the key under `agents` of a descriptor. */
export type AgentId = string;

/** Part of a message, tagged by `type`. */
export type Block = (TextBlock & {
  type: "text";
}) | (ImageBlock & {
  type: "image";
}) | (FileBlock & {
  type: "file";
}) | (AudioBlock & {
  type: "audio";
}) | (ThinkingBlock & {
  type: "thinking";
}) | (RefusalBlock & {
  type: "refusal";
}) | (ErrorBlock & {
  type: "error";
}) | (ApprovalBlock & {
  type: "approval";
}) | (ExtensionBlock & {
  type: "extension";
}) | (ToolCall & {
  type: "toolCall";
});

/** Approval and its state. Allowed in assistant and tool result messages. */
export type ApprovalBlock = {
  /** Call that needs approval. */
  callId: CallId;
  /** State of the approval. */
  state: ApprovalState;
  /** Reason. */
  reason?: string;
};

/** State of an approval. */
export type ApprovalState = "requested" | "granted" | "denied";

/** Audio. Allowed in user, assistant and tool result messages. */
export type AudioBlock = {
  /** Base64 data. */
  data?: string;
  /** URL of the audio. */
  url?: string;
  /** Media type. */
  mimeType?: string;
  /** Transcript of the speech. */
  transcript?: string;
};

/** Id of a tool call, chosen by the provider and repeated in its result. */
export type CallId = string;

/** Message of the application. */
export type CustomMessage = {
  /** Application's type. */
  customType: string;
  /** Blocks to display or send. */
  content?: Block[];
  /** Whether it is displayed. */
  display?: boolean;
  /** Application data; never sent to a model. */
  data?: unknown;
  /** Whether `content` is sent to a model as user text. */
  toModel: boolean;
  /** Time in milliseconds since 1970. */
  timestamp?: number;
};

/** Error. Allowed in assistant and tool result messages. */
export type ErrorBlock = {
  /** Human-readable message. */
  message: string;
  /** Stable code. */
  code?: string;
  /** Further data. */
  details?: unknown;
};

/** Block of another vocabulary. Allowed in every message. */
export type ExtensionBlock = {
  /** Vocabulary; `harness` is this crate's. */
  namespace: string;
  /** Name in the vocabulary. */
  name: string;
  /** Content. */
  data: unknown;
};

/** File. Allowed in user and tool result messages. */
export type FileBlock = {
  /** Base64 data. */
  data?: string;
  /** URL of the file. */
  url?: string;
  /** File uploaded to the provider. */
  fileId?: string;
  /** Media type. */
  mimeType?: string;
  /** File name. */
  name?: string;
};

/** Reason why a model stopped: `stop`, `length`, `toolUse`, `error`, `aborted`, `contentFilter`, `refusal`, `paused`, or the provider's own word. */
export type FinishReason = string;

/** Image, by value or by reference. Allowed in system, user, tool result and custom messages. */
export type ImageBlock = {
  /** Base64 data; requires `mime_type`. */
  data?: string;
  /** Media type of `data`. */
  mimeType?: string;
  /** URL of the image. */
  url?: string;
  /** File uploaded to the provider. */
  fileId?: string;
  /** Requested level of detail. */
  detail?: string;
};

/** A part of a transcript. */
export type MessageList = {
  /** Position of the first message. */
  from: number;
  /** The messages, each tagged by `role`. */
  messages: Message[];
  /** Number of messages in the transcript. */
  total: number;
};

/** Name of a model, in the form its provider expects. */
export type ModelName = string;

/** Lists the queued messages in the order of their delivery. */
export type Queue = {
  /** Queued messages. */
  entries: EntryView[];
};

/** A queued message. */
export type Queued = {
  /** Id of the queue entry. */
  entry: string;
};

/** Refusal of a model. Allowed in assistant messages. */
export type RefusalBlock = {
  /** Text of the refusal. */
  text: string;
};

/** Report of a run. */
export type ReportView = {
  /** Id of the run. */
  run: RunId;
  /** Outcome: `completed`, `needs_clarification`, `awaiting_approval`, `deferred` or `failed`. */
  outcome: string;
  /** Stop reason, as a stable code. */
  stopReason: string;
  /** Answer, or the question that ended the run. */
  text: string;
  /** Human-readable problem. */
  problem?: string;
  /** Reason of an abort. */
  aborted?: string;
  /** Position of its first message in the transcript. */
  from: number;
  /** Number of messages in the transcript at its end. */
  messages: number;
  /** Number of queued messages. */
  waiting: number;
  /** End of the run with evidence, usage and continuation, as in `harness run --json`. */
  end: {
    /** Text for the user: the answer, the question, the refusal, or the partial answer of an early stop. Absent if there is none. */
    answer?: string;
    /** Agent that was active at the end. */
    agent?: AgentId;
    /** Iterations that called the model. */
    iterations: number;
    /** Turns of a run; 1 for a turn. */
    turns: number;
    /** Usage. */
    usage: TotalUsage;
    /** Duration. */
    elapsed: Millis;
    /** Data to resume from, if possible. */
    continuation?: Continuation;
    /** Waived checks of the end. Empty in strict mode. */
    waived?: Waiver[];
    /** Last storage error, if the session is incomplete. */
    persistFailed?: string;
    /** Report of the run's control, if any. */
    control?: unknown;
    /** Outcome. */
    outcome: Outcome;
    /** Stop reason. */
    stopReason: StopReason;
    /** Evidence for the stop reason. */
    evidence: Evidence;
  };
};

/** Data that resumes a stopped turn, version 1. Newer versions are rejected. */
export type Continuation = {
  /** Version of the format. */
  version: number;
  /** `TURN:KIND`. */
  id: string;
  /** Kind of input that it needs. */
  type: ContinuationKind;
  /** Time of creation. */
  createdAt: Time;
  /** Stopped turn. */
  turnId: TurnId;
  /** Session with the transcript. */
  sessionId?: SessionId;
  /** Thread. */
  threadId?: ThreadId;
  /** Assistant, as the caller names it. */
  assistantId?: string;
  /** Hash of the turn's descriptor; resuming with a different one is the caller's explicit choice. */
  descriptorHash?: string;
  /** Stop reason of the turn. */
  stopReason: StopReason;
  /** Active agent. */
  agent?: AgentId;
  /** Length of the transcript. */
  transcriptLen: number;
  /** Question, of a clarification. */
  question?: string;
  /** Request of the model, of an approval. */
  request?: ApprovalRequest;
  /** Held calls, of an approval. */
  pending?: PendingCall[];
  /** Iteration of the stop. */
  iteration: number;
  /** Tool calls of the turn. */
  toolCallCount: number;
  /** Usage of the turn. */
  usage: TotalUsage;
  /** Queued messages: an open call must be followed by its result, so they are appended after it. At most the oldest 256. */
  waiting?: Message[];
  /** Replacement by the approver, to be stored and sent by the host instead. */
  replacedBy?: unknown;
};

/** Request for approval, of a model or for a held call. */
export type ApprovalRequest = {
  /** Request id, chosen by the model; of a held call, the call's id. */
  id: string;
  /** Kind of action; of a held call, the tool. */
  kind: string;
  /** One line for the approver. */
  summary: string;
  /** Details for the approver. */
  details?: string;
  /** Caller data. */
  metadata?: unknown;
  /** Held call, if the request is about one. */
  callId?: CallId;
};

/** Kind of input that a continuation needs. */
export type ContinuationKind = "clarification" | "approval" | "deferred";

/** Evidence of a stop reason. */
export type Evidence = "none" | {
  limit: Reached;
} | {
  invalid: Invalid;
} | {
  tool: {
    /** Tool. */
    name: string;
    /** Error code, if any. */
    code?: string;
  };
} | {
  fault: Fault;
} | {
  approval: ApprovalRequest;
} | {
  held: ApprovalRequest[];
} | {
  gate: {
    /** Gate. */
    gate: GateName;
    /** Call. */
    call: CallId;
    /** Called tool. */
    tool: ToolName;
    /** Reason. */
    reason: string;
  };
} | {
  guardrail: {
    /** Guardrail. */
    guardrail: GateName;
    /** Subject. */
    stage: GuardStage;
    /** Reason. */
    reason?: string;
  };
} | {
  loop: {
    /** Tools of the cycle, in order. */
    tools: string[];
  };
} | {
  density: ThinEvidence;
} | {
  toolResult: ToolEvidence;
} | {
  cancelled: {
    /** Canceller. */
    by: string;
  };
};

/** Error of one part of a run: a model, a tool, a gate, a store. */
export type Fault = {
  /** Part that failed. */
  source: FaultSource;
  /** Stable code. */
  code: string;
  /** Human-readable message: what failed and what to do. Never contains a secret. */
  message: string;
};

/** Parts that can fail. */
export type FaultSource = "model" | "tool" | "agent" | "gate" | "guardrail" | "approver" | "layer" | "compactor" | "session" | "checkpoints" | "steering" | "facts" | "machine";

/** Name of a gate or a check, in events and results. */
export type GateName = string;

/** Subject of a guardrail. */
export type GuardStage = "input" | "output" | "result";

/** Description of an unusable output. */
export type Invalid = {
  /** Problem, for the user and the model. */
  reason: string;
  /** `transient`, `schema_mismatch`, `empty_response`, `missing_message`, `model_refused` or `provider_error`. */
  kind?: string;
  /** `credits_exhausted`, `rate_limited`, `timeout`, `invalid_request`, `context_length_exceeded`, `model_not_found`, `auth_failed` or `unknown`. */
  code?: string;
  /** Received data, as the adapter kept it. */
  raw?: unknown;
  /** HTTP status, if any. */
  httpStatus?: number;
  /** Time of the adapter's retry. */
  retriedAt?: string;
};

/** Duration in milliseconds. */
export type Millis = number;

/** Outcome of a turn or a run. */
export type Outcome = "completed" | "needs_clarification" | "awaiting_approval" | "deferred" | "failed";

/** Call without a decision. */
export type PendingCall = {
  /** Call id. */
  callId: CallId;
  /** Position of its assistant message in the transcript. */
  message: number;
  /** Reason why it is held. */
  reason: string;
  /** Called tool. */
  tool: ToolName;
  /** Digest that an approval must match. Empty matches nothing. */
  digest: CallDigest;
  /** Run of the call. */
  run?: RunId;
  /** Arguments to execute; `None` in data of earlier versions. */
  arguments?: unknown;
  /** Work of the call, if it has started: the decisions are about that. `None` for a call that is held before it starts. */
  work?: PendingWork;
};

/** Digest that binds a decision to one call of one run: 64 hex digits. */
export type CallDigest = string;

/** Work of a call, such as that of a sub-agent, that waits for approval. */
export type PendingWork = {
  /** Attempt of the call, from 1. It is performed again under the same number. */
  attempt: number;
  /** Requests of the work (`Ongoing::approvals`(crate::tool::Ongoing::approvals)). */
  requests: ApprovalRequest[];
};

/** Limit that was reached: the evidence of a stop. */
export type Reached = {
  /** Resource. */
  limit: Limit;
  /** Used and reserved amount. */
  value: number;
  /** Ceiling. */
  ceiling: number;
  /** Minimum amount for the next operation, if the value is below the ceiling but that does not fit. */
  needs?: number;
};

/** Limited resource. */
export type Limit = "iterations" | "tool_calls" | "elapsed" | "tokens" | "cost" | "turns" | "context";

/** Id of a run. */
export type RunId = string;

/** Something that a user says: a text, or blocks. */
export type Say = {
  /** Blocks of text, images, files and audio instead of `text`. */
  content?: UserBlock[] | null;
  /** Text of the message. */
  text?: string | null;
};

/** A message to a thread. */
export type Send = {
  /** Blocks of text, images, files and audio instead of `text`. */
  content?: UserBlock[] | null;
  /** Time of delivery if the thread is busy. An idle thread starts a run immediately. */
  delivery?: Delivery;
  /** Id of the queue entry. Default: generated by the thread. */
  entry?: string | null;
  /** Text of the message. */
  text?: string | null;
};

/** Id of a stored session. */
export type SessionId = string;

/** Message that starts a run of an idle thread. */
export type StartRun = {
  /** Blocks of text, images, files and sound, in place of a text. */
  content?: UserBlock[] | null;
  /** Values laid over the defaults of the descriptor's `context`, up to 16 KiB. Default: those of the thread. */
  context?: Record<string, unknown> | null;
  /** Data of the caller, up to 16 KiB. Default: that of the thread. */
  metadata?: Record<string, unknown> | null;
  /** JSON Schema that the answer must match. An answer that does not match goes back to the model, within the limit
   * of invalid outputs; then the run ends `invalid_output`. Default: that of the agent. */
  outputSchema?: Record<string, unknown> | null;
  /** Text of the message. */
  text?: string | null;
  /** User of the run, up to 256 characters. Default: that of the thread. */
  user?: string | null;
};

/** A started run. */
export type Started = {
  /** Id of the run. */
  run: string;
};

/** Status of a thread. */
export type StatusView = {
  /** State of the thread. */
  state: ThreadState;
  /** Id of the current run. */
  run?: RunId;
  /** Start of this status, in milliseconds since 1970. */
  since?: Time;
};

/** Reason of the end of a turn or a run. It determines the outcome, so the two cannot disagree. */
export type StopReason = "answer_finalized" | "completion_waived" | "clarification_required" | "approval_required" | "max_iterations_reached" | "max_tool_calls_reached" | "timeout_reached" | "budget_reached" | "context_overflow" | "max_turns_reached" | "stalled" | "backend_deferred" | "redundant_tool_loop" | "tool_unavailable" | "tool_error_unrecoverable" | "model_refused" | "model_invalid_response" | "invalid_output" | "runtime_error" | "evidence_density_violation" | "policy_denied" | "guardrail_triggered" | "cancelled" | "internal_invariant";

/** Instructions inside of the transcript. Compaction never removes them. */
export type SystemMessage = {
  /** Blocks. */
  content: Block[];
  /** Instruction part of the message. */
  origin?: string;
  /** Role on the wire, if a protocol has several (`developer`). */
  as?: string;
  /** Provider's id. */
  id?: string;
  /** Provider's status. */
  status?: string;
};

/** Text. Allowed in every message. */
export type TextBlock = {
  /** Text; may be empty. */
  text: string;
  /** Provider's signature over the text. */
  textSignature?: string;
  /** Citations and similar notes, as the provider sent them. */
  annotations?: unknown[];
  /** Token probabilities, as the provider sent them. */
  logprobs?: unknown;
  /** Phase of an answer (for example `commentary`), if the provider reports it. */
  phase?: string;
  /** Provider's item id; blocks of one item share it. */
  itemId?: string;
  /** Provider's status of the item. */
  status?: string;
};

/** Answer that claims more than its evidence supports. */
export type ThinEvidence = {
  /** Number of tool results. */
  toolCallCount: number;
  /** Length of the results in UTF-16 units. */
  outputChars: number;
  /** Kinds of claims, in this order: `markdown_table`, `numbered_list`, `sha_like`, `date`, `owner_repo`. */
  claimMarkers: string[];
};

/** Reasoning of a model. Allowed in assistant messages. */
export type ThinkingBlock = {
  /** Text; a placeholder if `redacted`. */
  thinking: string;
  /** Provider's signature, or the encrypted payload if `redacted`. */
  thinkingSignature?: string;
  /** Whether the provider withholds the text. */
  redacted?: boolean;
  /** Provider's item id. */
  id?: string;
  /** Summaries of the reasoning. */
  summary?: string[];
  /** Wire field of the text. */
  field?: string;
};

/** Event of a thread's stream: `event` and `data` of server-sent events. */
export type ThreadEvent = {
  event: "status";
  /** The status of the thread changed. */
  data: {
    type: "status";
    seq: number;
    /** New status. */
    status: StatusView;
  };
} | {
  event: "queue";
  /** An entry of the queue changed. */
  data: {
    type: "queue";
    seq: number;
    /** Id of the entry. */
    entry: EntryId;
    /** `queued`, `changed` or `removed`. */
    change: string;
    /** Time of delivery of a queued entry. */
    delivery?: Delivery;
  };
} | {
  event: "run_started";
  /** A run started. */
  data: {
    type: "run_started";
    seq: number;
    /** Id of the run. */
    run: RunId;
    /** Ids of the queue entries that started it. */
    entries: EntryId[];
  };
} | {
  event: "event";
  /** An event of the run. */
  data: {
    type: "event";
    seq: number;
    /** The event, as in `harness run --json`. */
    event: Event;
  };
} | {
  event: "delta";
  /** A part of a model response in progress. */
  data: {
    type: "delta";
    /** Absent where no log keeps deltas: on a durable engine. */
    seq?: number;
    /** Text, reasoning or arguments to append. */
    part: DeltaPart;
  };
} | {
  event: "answer_restarted";
  /** The model response in progress starts again: discard its deltas so far. On a durable engine, when a worker was lost. */
  data: {
    type: "answer_restarted";
  };
} | {
  event: "tool_update";
  /** Output of a call in progress. */
  data: {
    type: "tool_update";
    /** Absent where no log keeps progress: on a durable engine. */
    seq?: number;
    /** Call that is running. */
    call: ToolCall;
    /** Its output so far. */
    content: Block[];
  };
} | {
  event: "run_ended";
  /** A run ended. */
  data: {
    type: "run_ended";
    seq: number;
    /** Report of the run. */
    report: ReportView;
  };
} | {
  event: "run_failed";
  /** A run could not start, or its session could not be written. */
  data: {
    type: "run_failed";
    seq: number;
    /** Id of the run. */
    run: RunId;
    /** Reason of the failure. */
    error: ErrorDetail;
  };
} | {
  event: "text";
  /** A part of a text. */
  data: {
    /** Characters to append. */
    text: string;
  };
} | {
  event: "reasoning";
  /** A part of a text. */
  data: {
    /** Characters to append. */
    text: string;
  };
} | {
  event: "item";
  /** Message or block; a later item replaces the one with the same id. */
  data: {
    /** Id of the item in the thread. */
    id: string;
    /** Number of the event; absent where no log keeps deltas: on a durable engine. */
    seq?: number;
    /** Whether no later item replaces it. */
    complete: boolean;
    /** Complete message. */
    message?: Message;
    /** Complete block. */
    block?: Block;
    /** Block in progress. */
    coming?: Coming;
  };
} | {
  event: "approvals";
  /** The calls that wait for a decision have changed, including those of sub-agents. Also the first event of a stream if there are any. */
  data: {
    /** Number of calls that the run holds for a decision. */
    pending: number;
  };
} | {
  event: "lagged";
  /** Events that a slow client missed. */
  data: {
    /** Number of missed events. */
    missed: number;
  };
} | {
  event: "reset";
  /** The server has restarted its numbers. */
  data: {
    /** Number of the next event. */
    next: number;
  };
} | {
  event: "end";
  /** Reason for the end of a stream. */
  data: {
    /** `run_ended`, or `closed` if the thread was closed or the server stopped. */
    reason: string;
    /** Id of the ended run. */
    run?: string;
    /** Outcome of the run; absent if it failed to start. */
    outcome?: string;
    /** Stop reason of the run. */
    stopReason?: string;
    /** Human-readable problem. */
    problem?: string;
  };
};

/** A block of an answer in progress. */
export type Coming = {
  type: "text";
  text: string;
} | {
  type: "thinking";
  thinking: string;
} | {
  type: "toolCall";
  index: number;
  id?: string;
  name: string;
  arguments: string;
} | {
  type: "unknown";
};

/** Content of a delta. */
export type DeltaPart = {
  text: string;
} | {
  thinking: string;
} | {
  callStarted: {
    /** Number of the call in the response, starting at 0. */
    index: number;
    /** Provider's id, if any. The response has the final id: missing ids are created, and repeated ones made unique. */
    id?: CallId;
    /** Tool. */
    name: ToolName;
  };
} | {
  callArguments: {
    /** Number of the call in the response. */
    index: number;
    /** Text. */
    text: string;
  };
} | {
  backendToolStarted: {
    /** Backend's call id. */
    id: CallId;
    /** Backend's tool name. */
    name: ToolName;
    /** Arguments. */
    input: unknown;
  };
} | {
  backendToolFinished: {
    /** Backend's call id. */
    id: CallId;
    /** Output, cut at a limit of the adapter. */
    output: string;
    /** Whether it failed. */
    failed: boolean;
  };
} | {
  note: string;
} | {
  provider: ProviderEvent;
};

/** Id of a session entry. */
export type EntryId = string;

/** Details of an error. */
export type ErrorDetail = {
  /** Stable code. */
  kind: string;
  /** Human-readable message. */
  message: string;
  /** Suggested fix. */
  hint?: string;
  /** Path of the invalid field in the request body. */
  path?: string;
};

/** Event of a run. */
export type Event = {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "run_started";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Hash of the descriptor of its agents. */
  descriptorHash?: string;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "run_taken_up";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Turn of the checkpoint, starting at 1. */
  atTurn: number;
  /** Messages stored after the checkpoint. */
  messages: number;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "agent_prepared";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Agent with its instructions, tools, model and settings. */
  offer: PreparedAgent;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "turn_started";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Agent. */
  agent: AgentId;
  /** Whether it continues an earlier turn. */
  resumed: boolean;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "call_repaired";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Call. */
  call: ToolCall;
  /** Treatment. */
  how: RepairHow;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "message_appended";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Position in the transcript. */
  index: number;
  /** Message. */
  message: Message;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "model_step_started";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Agent. */
  agent: AgentId;
  /** Requested model. */
  model?: ModelName;
  /** Whether the model cannot call tools, because the turn is about to end; absent otherwise. */
  closing?: boolean;
  /** Message behind the view of the request that is not in the transcript, after an interrupted response. */
  ending?: Message;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "model_step_finished";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Output type of the response. */
  outputType: string;
  /** Usage. */
  usage?: Usage;
  /** Duration. */
  durationMs: Millis;
  /** Time from the request to the first token of the response: text, reasoning or a call. Absent if nothing was streamed. */
  firstTokenMs?: Millis;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "model_step_failed";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Error. */
  fault: Fault;
  /** Usage of the partial response, if any. */
  usage?: Usage;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "model_step_continued";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Error code, or `incomplete_answer`, `empty_answer` or `tool_rounds`. */
  reason: string;
  /** Consecutive attempts, starting at 1. */
  attempt: number;
  /** Maximum number of consecutive attempts. */
  most: number;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "tool_requested";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Calls, in order. */
  calls: ToolCall[];
  /** Whether they may run in parallel; absent in records of earlier versions. */
  parallel?: boolean;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "decided";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Gate or check. */
  by: GateName;
  /** Subject: `prepare`, `call`, `handoff`, `prompt`, `answer`, `end`, `result` or `invalid`. */
  point: string;
  /** Call, if any. */
  callId?: CallId;
  /** Of a gate `allow`, `rewrite`, `hold`, `deny` or `halt`; of a check `accept`, `amend`, `waive`, `continue`, `ask`, `refuse` or `unfounded`. An error has a verdict, too. */
  verdict: string;
  /** Reason. */
  reason?: string;
  /** Facts of the decision; of a policy its whole decision. */
  facts?: unknown;
  /** Duration. */
  durationMs: Millis;
  /** Error, panic or timeout. */
  fault?: Fault;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "approval_requested";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Request. */
  request: ApprovalRequest;
  /** Approval id, of a call. */
  approvalId?: ApprovalId;
  /** Digest that binds a decision to the call. */
  digest?: CallDigest;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "approval_decided";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Call. */
  callId: CallId;
  /** `granted`, `edited`, `denied` or `later`. */
  decision: string;
  /** Reason. */
  reason?: string;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "tool_started";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Call. */
  call: ToolCall;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "tool_retried";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Call. */
  call: ToolCall;
  /** Next attempt; 2 is the first retry. */
  attempt: number;
  /** Maximum number of attempts. */
  maxAttempts: number;
  /** Wait before the attempt. */
  backoffMs: Millis;
  /** Error of the previous attempt. */
  previousError?: ToolError;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "tool_finished";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Call. */
  call: ToolCall;
  /** Outcome of the call. */
  outcome: ToolOutcome;
  /** Duration since the start of the first attempt. */
  durationMs: Millis;
  /** Note on the result. */
  note?: ResultNote;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "tool_failed";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Call. */
  call: ToolCall;
  /** Outcome of the call. */
  outcome: ToolOutcome;
  /** Duration; zero if it never ran. */
  durationMs: Millis;
  /** Whether it ran. */
  ran: boolean;
  /** Panic of the tool, or error of its registry. */
  fault?: Fault;
  /** Note on the result. */
  note?: ResultNote;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "handed_off";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Call of the handoff. */
  callId: CallId;
  /** Previous agent. */
  from: AgentId;
  /** Next agent. */
  to: AgentId;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "clarification_requested";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Question. */
  question: string;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "steering_injected";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Entries of the queue. */
  entries: EntryId[];
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "view_planned";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** `layers` or `compactor`. */
  by: string;
  /** Messages of the transcript. */
  messages: number;
  /** Spans of the plan. */
  spans: number;
  /** Plan of the view. */
  plan: Plan;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "context_pressure";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Tokens of the request. */
  estimate: number;
  /** Tokens from which on the view is shortened. */
  soft: number;
  /** Tokens from which on a request is not sent before that. */
  blocking: number;
  /** Tokens of the context window. */
  window: number;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "compaction_started";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** `request`, `overflow` or `requested`. */
  trigger: string;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "compaction_completed";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Description of the compaction. */
  note: CompactionNote;
  /** Whether the transcript itself was replaced by what `plan` shows, so that positions restart. */
  permanent: boolean;
  /** Plan from here on. */
  plan: Plan;
  /** Usage of the compaction. */
  usage: TotalUsage;
  /** Duration. */
  durationMs: Millis;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "compaction_failed";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Error. */
  fault: Fault;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "model_usage_charged";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Purpose of the calls. */
  purpose: Purpose;
  /** Usage. */
  usage: PurposeUsage;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "part_failed";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Part and error. */
  fault: Fault;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "persist_failed";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Error message. */
  message: string;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "limit_reached";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Stop reason that follows. */
  stopReason: StopReason;
  /** Evidence; absent for loop detection. */
  reached?: Reached;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "turn_finished";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** End of the turn. */
  end: End;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "control";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** Report of the control: an object with a `kind`. */
  event: unknown;
  /** Origin of the work. */
  origin: Origin;
} | {
  /** Number of the event, starting at 0, without gaps. */
  seq: number;
  /** Time in milliseconds since 1970. */
  at: number;
  type: "run_finished";
  /** Turn of the run, starting at 1. */
  turn: number;
  /** Iteration; 0 before the first. */
  iteration: number;
  /** End of the run. */
  end: End;
  /** Origin of the work. */
  origin: Origin;
};

/** Id of an approval request: `apr-` and 16 hex digits of the call's digest. */
export type ApprovalId = string;

/** End of a turn or a run: outcome, stop reason, evidence and usage. */
export type End = {
  /** Stop reason and evidence. */
  stop: Stop;
  /** Text for the user: the answer, the question, the refusal, or the partial answer of an early stop. Absent if there is none. */
  answer?: string;
  /** Agent that was active at the end. */
  agent?: AgentId;
  /** Iterations that called the model. */
  iterations: number;
  /** Iteration that stopped before its model call, if any; events of the end carry its number. */
  refusedIteration?: number;
  /** Turns of a run; 1 for a turn. */
  turns: number;
  /** Usage. */
  usage: TotalUsage;
  /** Duration. */
  elapsed: Millis;
  /** Data to resume from, if possible. */
  continuation?: Continuation;
  /** Waived checks of the end. Empty in strict mode. */
  waived?: Waiver[];
  /** Last storage error, if the session is incomplete. */
  persistFailed?: string;
  /** Whether it continued an earlier turn. */
  resumed: boolean;
  /** Report of the run's control, if any. */
  control?: unknown;
};

/** Ids and caller data of work, carried by events, tools and sessions. */
export type Origin = {
  /** Assistant, as the caller names it. */
  assistant?: string;
  /** Thread. */
  thread?: ThreadId;
  /** Run. */
  run?: RunId;
  /** Turn. */
  turn?: TurnId;
  /** Stored session. */
  session?: SessionId;
  /** Workspace, as the caller names it. */
  workspace?: string;
  /** User, as the caller names them. */
  user?: string;
  /** Caller data, copied into events. */
  metadata?: unknown;
  /** Tools that this work may use; `None` allows all. */
  allowedTools?: ToolName[];
  /** Hash of the descriptor that defines the agents. */
  descriptorHash?: string;
  /** Call that started this work; `None` for work that a user requested. */
  parent?: ParentCall;
};

/** Call on whose behalf a sub-agent works. */
export type ParentCall = {
  /** Call id. */
  callId: CallId;
  /** Calling agent. */
  agent: AgentId;
  /** Run of the call. */
  run?: RunId;
  /** Turn of the call. */
  turn?: TurnId;
  /** Nesting depth; 1 for a sub-agent of a top-level agent. */
  depth: number;
};

/** Projection of a transcript: the messages that a model receives, as spans. */
export type Plan = {
  /** Spans in order. */
  spans: Span[];
};

/** Agent with its tools looked up, as a model receives it. */
export type PreparedAgent = {
  /** Agent id. */
  agent: AgentId;
  /** Instructions. */
  instructions: string;
  /** Tools, then open handoffs. */
  tools: ToolDef[];
  /** Requested model. */
  model: ModelName | null;
  /** Settings for the model. */
  settings: unknown;
  /** JSON Schema that its answers must match. */
  output?: unknown;
  /** Provider of the model, if known. */
  provider?: string;
  /** Protocol of the model, if known. */
  protocol?: string;
  /** Whether it is prepared before each iteration. */
  changes?: boolean;
};

/** One event of a provider's stream, or its whole answer if it does not stream. */
export type ProviderEvent = {
  /** Provider's name of the event, such as `response.output_text.delta`; `None` if the protocol has none. */
  type?: string;
  /** Content, unchanged. */
  data: unknown;
  /** Number of the item of the answer that it belongs to, starting at 0. */
  outputIndex?: number;
  /** Number of the block of that item, starting at 0. */
  contentIndex?: number;
};

/** Purpose of a model call. */
export type Purpose = "answer" | "layer" | "guardrail" | "stop_gate" | "compaction" | "judge" | "child";

/** Usage of model calls with one purpose. Totals are absent until a value is reported. */
export type PurposeUsage = {
  /** Model calls, including failed ones. */
  modelCalls: number;
  /** Failed model calls. */
  failedCalls?: number;
  /** Input tokens. */
  inputTokens?: number;
  /** Output tokens. */
  outputTokens?: number;
  /** Total tokens as limits count them, including caches. */
  totalTokens?: number;
  /** Part of the total that is estimated, because no provider reported it. */
  estimatedTokens?: number;
  /** Cost. */
  cost?: Cost;
};

/** Amount of money in the currency of the provider or the price list, with at most nine decimals. */
export type Cost = number;

/** Treatment of a call without a result when a transcript is resumed. */
export type RepairHow = "recovered" | "rerun" | "interrupted" | "not_run" | "run";

/** Note on a result. */
export type ResultNote = "late";

/** Part of a `Plan`. */
export type Span = {
  kept: Range_of_uint;
} | {
  made: Message[];
};

export type Range_of_uint = {
  start: number;
  end: number;
};

/** Stop reason with its evidence. */
export type Stop = {
  /** Stop reason. */
  reason: StopReason;
  /** Evidence for the reason. */
  evidence: Evidence;
};

/** Id of a thread. */
export type ThreadId = string;

/** Threads, by name. */
export type ThreadList = {
  /** Value of `after` for the next page; absent at the end. */
  next?: string | null;
  /** Threads of the page. */
  threads: ThreadLine[];
};

/** A thread in a list. */
export type ThreadLine = {
  /** Time of its creation as ISO text, if it has a session or is on an engine. */
  createdAt?: string | null;
  /** Id of the thread. */
  id: string;
  /** Number of messages, if known from its session. */
  messages?: number | null;
  /** Data of the caller. */
  metadata?: Record<string, unknown> | null;
  /** Reason why its session cannot be read. */
  problem?: string | null;
  /** Status of the thread. */
  status: StatusView;
  /** Name of its session, or the start of its first user message. */
  title?: string | null;
  /** Time of the last message of its session as ISO text; on an engine, of the start of its last run. */
  updatedAt?: string | null;
  /** User of its runs. */
  user?: string | null;
};

/** State of a thread. */
export type ThreadState = "idle" | "queued" | "generating" | "awaiting_approval" | "aborting" | "compacting";

/** State of a thread. */
export type ThreadView = {
  /** Blocks of the answer in progress; absent if no model call is in flight. */
  answer?: Coming[] | null;
  /** Number of pending calls. */
  approvals: number;
  /** Values laid over the defaults of the descriptor's context. */
  context?: Record<string, unknown> | null;
  /** Error of the last run. */
  error?: string | null;
  /** Id of the thread. */
  id: string;
  /** Number of messages in its transcript, including those of the current run. */
  messages: number;
  /** Data of the caller. */
  metadata?: Record<string, unknown> | null;
  /** The model of the next run. */
  model?: string | null;
  /** The number of the next event. */
  nextSeq: number;
  /** Calls in flight, in the order of their start. */
  pendingCalls: string[];
  /** Status of the thread. */
  status: StatusView;
  /** User of its runs. */
  user?: string | null;
  /** Number of queued messages. */
  waiting: number;
};

/** Point in time: milliseconds since 1970-01-01T00:00:00Z. */
export type Time = number;

/** Tool call of a model. Allowed in assistant messages. */
export type ToolCall = {
  /** Provider's id, repeated in the result. A turn makes it unique in its transcript. */
  id: CallId;
  /** Tool name. */
  name: ToolName;
  /** Arguments: an object, numbers exact, keys in order. */
  arguments: unknown;
  /** Provider's text, if it differs from the text of `arguments`. */
  rawArguments?: string;
  /** Parser result for `arguments`: `strict`, `repaired`, `partial` or `invalid`. */
  argumentsMode?: string;
  /** Provider's signature over the reasoning that led to the call. */
  thoughtSignature?: string;
  /** Provider's item id. */
  itemId?: string;
  /** Provider's status of the item. */
  status?: string;
  /** `function` (default), `handoff` or `hosted`. */
  kind?: string;
  /** Report of a tool that the provider ran. */
  hosted?: unknown;
};

/** Definition of a tool: for the model, and for the turn. A clone is cheap. */
export type ToolDef = {
  /** Name that the model calls. */
  name: ToolName;
  /** Description for the model. */
  description: string;
  /** JSON Schema of the arguments; `None` accepts any object. */
  inputSchema?: unknown;
  /** Function or handoff. */
  kind: ToolKind;
  /** Rule for repeating calls. Default `unsafe`. */
  class: RetryClass;
  /** Whether calls run alone in their batch. Default false. */
  sequential: boolean;
  /** Whether the tool is polled: equal results of equal calls are not a loop. Default false. */
  polling: boolean;
  /** Whether the tool changes only its own state (a list, notes, a mode), nothing outside of the thread, so that it is allowed in read-only modes. Default false. */
  internal?: boolean;
  /** Whether a successful result ends the turn after its batch. Default false. */
  terminal?: boolean;
  /** Whether each call needs approval. Default false. */
  requiresApproval: boolean;
  /** Maximum further usage of a call (a sub-agent). A call gets at most half of what is left of each resource, and does not run if nothing is left. Default nothing. */
  share: Amount;
  /** Caller data. */
  metadata?: unknown;
};

/** Amount of each limited resource. */
export type Amount = {
  /** Model calls. */
  iterations: number;
  /** Tool calls. */
  toolCalls: number;
  /** Tokens, input and output together. */
  tokens: number;
  /** Cost. */
  cost: Cost;
};

/** Rule for repeating a call that started and has no result (law 5). */
export type RetryClass = "pure" | "idempotent" | "unsafe";

/** Error of a tool. */
export type ToolError = {
  /** Stable code. */
  code: string;
  /** Message for the model and the user. */
  message: string;
  /** Whether a retry may succeed. Default no. */
  retryable?: boolean;
  /** Data of the tool. */
  metadata?: unknown;
};

/** Tool result that raised a question to the user. */
export type ToolEvidence = {
  /** Call. */
  callId: CallId;
  /** Tool. */
  toolName: ToolName;
  /** `success` or `error`. */
  status: string;
  /** Reason of the question. */
  reason?: AskReason;
  /** Caller data of the question. */
  metadata?: unknown;
};

/** Reason of a question to the user. */
export type AskReason = "empty_results" | "ambiguous_identifier" | "transient_provider_error" | "custom";

/** Kind of a tool definition. */
export type ToolKind = "function" | {
  handoff: AgentId;
};

/** Name under which a model calls a tool. */
export type ToolName = string;

/** Outcome of a tool call. */
export type ToolOutcome = {
  /** Status. */
  status: ToolStatus;
  /** Blocks for the model. For an error without content, the error's message is sent. */
  content: Block[];
  /** Result as data. */
  structured?: unknown;
  /** Error, with a status other than `success`. */
  error?: ToolError;
  /** Reported usage, added to the turn's totals. */
  usage?: Usage;
  /** Actual usage of the call's grant (a sub-agent), even on failure. */
  spent: Amount;
  /** Work that outlives its call. */
  ongoing?: Ongoing;
  /** Whether the tool requests the end of the turn. It ends if every call of the batch does. */
  terminate: boolean;
  /** Exit code of a process. */
  exitCode?: number;
  /** Data of the tool, for users and logs; never sent to a model. */
  metadata?: unknown;
};

/** Report of work that outlives its call: a background agent, or work that waits for approval. */
export type Ongoing = {
  /** Whether the work continues: the call's grant stays reserved until a later result settles it, or the run ends. */
  keepsGrant: boolean;
  /** Finished work of earlier calls. */
  settled?: SettledGrant[];
  /** Requests of the work, such as that of a sub-agent, that wait for a person. With any, the call has no result yet: it is pending, and is performed again, with the same attempt and idempotency key, when it is granted. */
  approvals?: ApprovalRequest[];
};

/** End of work that an earlier call started: the rest of its grant is released. */
export type SettledGrant = {
  /** Call that started the work. */
  callId: CallId;
  /** Usage in addition to this result's `ToolOutcome::usage`. */
  spent: Amount;
};

/** Result of one tool call. */
export type ToolResultMessage = {
  /** Id of the call. */
  toolCallId: CallId;
  /** Tool name. */
  toolName: ToolName;
  /** Blocks for the model. */
  content: Block[];
  /** Whether the call failed. */
  isError: boolean;
  /** Result as data. */
  structured?: unknown;
  /** `{status, errorCode?, exitCode?, data?}`. */
  outcome?: unknown;
  /** Duration in milliseconds. */
  durationMs?: number;
  /** End of the call in milliseconds since 1970. */
  timestamp?: number;
  /** Data for users and logs; never sent to a model. */
  details?: unknown;
  /** Whether the tool requested the end of the turn. */
  terminate?: boolean;
  /** Provider's id. */
  id?: string;
  /** Provider's status. */
  status?: string;
};

/** Status of a finished call. */
export type ToolStatus = "success" | "failed" | "cancelled" | "timeout";

/** Usage of a turn or a run. Totals are absent until a value is reported. */
export type TotalUsage = {
  /** Model calls of all purposes, including failed ones. */
  modelCalls: number;
  /** Failed model calls. */
  failedCalls?: number;
  /** Started tool calls, excluding retried attempts. */
  toolCalls: number;
  /** Input tokens. */
  inputTokens?: number;
  /** Output tokens. */
  outputTokens?: number;
  /** Part of all tokens that is estimated, because no provider reported it. */
  estimatedTokens?: number;
  /** Cost. */
  cost?: Cost;
  /** Reported latency of models and tools, in milliseconds. */
  latencyMs?: number;
  /** Usage by purpose. Boxed, because a map allocates more values than it has. */
  byPurpose?: Record<string, PurposeUsage>;
};

/** Id of a turn. */
export type TurnId = string;

/** Usage of one model call. Numbers that the provider did not report are absent, never zero. */
export type Usage = {
  /** Input tokens neither read from nor written to a cache. */
  input?: number;
  /** Output tokens, reasoning included. */
  output?: number;
  /** Input tokens read from a cache. */
  cacheRead?: number;
  /** Input tokens written to a cache. */
  cacheWrite?: number;
  /** Reasoning tokens; part of `output`. */
  reasoning?: number;
  /** Total tokens as the provider counts them. */
  totalTokens?: number;
  /** Cost. */
  cost?: CostParts;
  /** Number of requests, if the message took more than one. */
  requests?: number;
  /** Latency in milliseconds. */
  latencyMs?: number;
  /** Whether the tokens are estimated because the provider reported none. */
  estimated?: boolean;
};

/** Cost of a model call by part. Unknown costs are absent, never zero. */
export type CostParts = {
  /** Uncached input tokens. */
  input?: Cost;
  /** Output tokens. */
  output?: Cost;
  /** Input tokens read from a cache. */
  cacheRead?: Cost;
  /** Input tokens written to a cache. */
  cacheWrite?: Cost;
  /** Total. */
  total?: Cost;
  /** Source of the amounts. */
  source?: CostSource;
};

/** Source of a cost. Stored as `"reported"` or `{"table":"2026-03-21"}`. */
export type CostSource = "reported" | {
  table: string;
};

/** Part of a user's message, tagged by `type`. */
export type UserBlock = (TextBlock & {
  type: "text";
}) | (ImageBlock & {
  type: "image";
}) | (FileBlock & {
  type: "file";
}) | (AudioBlock & {
  type: "audio";
});

/** Message of a user or on a user's behalf. */
export type UserMessage = {
  /** Blocks; a string is accepted when deserialized. */
  content: Block[];
  /** Time in milliseconds since 1970. */
  timestamp?: number;
  /** Name of the sender. */
  name?: string;
  /** `prompt`, `steering`, `follow_up`, `skill`, `template`, `summary` or `hook`. */
  origin?: string;
  /** Caller data; never sent to a model. */
  metadata?: unknown;
  /** Caller's or provider's id. */
  id?: string;
  /** Provider's status. */
  status?: string;
};

/** Waiver of a check of the end: its condition was not met, and the run ended anyway. */
export type Waiver = {
  /** Check. */
  gate: GateName;
  /** Reason. */
  why: string;
};
