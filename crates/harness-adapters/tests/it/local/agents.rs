//! What the events of agents mean.

use std::time::Duration;

use harness_adapters::execution::{
    ExecutionAdapter as _, ExecutionCx, ExecutionPart, ExecutionSink, ExecutionStatus,
};
use harness_adapters::local::LocalAgent;
use harness_core::Cancel;

use super::{Played, block_on, execute, gone, request};

#[track_caller]
fn check(agent: LocalAgent, lines: &[&str], code: i32, expected: &[&str]) {
    let told = Played::printing(agent, lines, code).told();
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
}

const CLAUDE_STARTS: &str = r#"{"type":"system","subtype":"init","session_id":"s-1","tools":["Bash"],"model":"m","claude_code_version":"2.1.197"}"#;
const CLAUDE_ENDS: &str = r#"{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"It says: x","stop_reason":"end_turn","session_id":"s-1","total_cost_usd":0.0012,"usage":{"input_tokens":200,"cache_creation_input_tokens":5,"cache_read_input_tokens":10,"output_tokens":40},"permission_denials":[]}"#;
const CLAUDE_USAGE: &str = r#"usage {"input":200,"output":40,"cacheRead":10,"cacheWrite":5,"totalTokens":255,"cost":{"total":0.0012}}"#;

#[test]
fn claude_code_is_told_as_it_goes_and_no_text_twice() {
    check(
        LocalAgent::ClaudeCode,
        &[
            CLAUDE_STARTS,
            r#"{"type":"system","subtype":"status","status":"requesting"}"#,
            r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"msg_1"}},"parent_tool_use_id":null}"#,
            r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}},"parent_tool_use_id":null}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"Hm."}],"id":"msg_1"},"parent_tool_use_id":null}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"cat note.txt"}}],"id":"msg_1"},"parent_tool_use_id":null}"#,
            r#"{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","content":[{"type":"text","text":"x"}],"is_error":false}]},"parent_tool_use_id":null}"#,
            r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"It "}},"parent_tool_use_id":null}"#,
            r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"says: x"}},"parent_tool_use_id":null}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"It says: x"}],"id":"msg_2"},"parent_tool_use_id":null}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"said by a subagent"}]},"parent_tool_use_id":"toolu_9"}"#,
            r#"{"type":"of_tomorrow","n":1}"#,
            "no JSON",
            CLAUDE_ENDS,
        ],
        0,
        &[
            r#"thinks "Hm.""#,
            r#"call toolu_1 Bash {"command":"cat note.txt"}"#,
            r#"result toolu_1 "x""#,
            r#"text "It ""#,
            r#"text "says: x""#,
            r#"note "{\"type\":\"of_tomorrow\",\"n\":1}""#,
            r#"note "no JSON""#,
            CLAUDE_USAGE,
            r#"completed "It says: x" {"backend":"claude-code","session":"s-1"}"#,
        ],
    );
}

#[test]
fn fault_26_characters_that_an_agent_cuts_in_two_are_whole() {
    let piece = |kind: &str, field: &str, text: &str| {
        format!(
            r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,"delta":{{"type":"{kind}","{field}":"{text}"}}}}}}"#
        )
    };
    let lines = [
        CLAUDE_STARTS.to_owned(),
        piece("thinking_delta", "thinking", r"hm \ud83d"),
        piece("thinking_delta", "thinking", r"\ude80"),
        piece("text_delta", "text", r"It \ud83d"),
        piece("text_delta", "text", r"\ude80 says"),
        CLAUDE_ENDS.to_owned(),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let told = Played::printing(LocalAgent::ClaudeCode, &lines, 0).told();
    let pieces: Vec<&str> = told.lines().take(4).collect();
    let expected = ["thinks \"hm \"", "thinks \"\u{1f680}\"", "text \"It \"", "text \"\u{1f680} says\""];
    assert_eq!(pieces, expected);
}

#[test]
fn fault_14_ids_and_names_of_an_agent_are_bounded() {
    let long = "x".repeat(1 << 20);
    let call = format!(
        r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"{long}","name":"{long}","input":{{}}}}]}}}}"#
    );
    let result = format!(
        r#"{{"type":"user","message":{{"content":[{{"tool_use_id":"{long}","type":"tool_result","content":"y"}}]}}}}"#
    );
    let starts = CLAUDE_STARTS.replace("s-1", &long);
    let ends = CLAUDE_ENDS.replace("s-1", &long);
    let told = Played::printing(LocalAgent::ClaudeCode, &[&starts, &call, &result, &ends], 0).told();
    assert!(told.len() < 4_000, "{} bytes", told.len());
    let id_of = |line: &str| told.lines().find_map(|told| told.strip_prefix(line)?.split(' ').next());
    assert_eq!(id_of("call "), id_of("result "), "{told}");
    assert!(id_of("call ").is_some_and(|id| id.starts_with("sha256:")), "{told}");
    assert!(!told.contains(r#""session""#), "a session that cannot be named is not continued: {told}");
}

#[test]
fn claude_code_without_pieces_tells_whole_texts() {
    check(
        LocalAgent::ClaudeCode,
        &[
            CLAUDE_STARTS,
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"It says: x"}]}}"#,
            CLAUDE_ENDS,
        ],
        0,
        &[
            r#"text "It says: x""#,
            CLAUDE_USAGE,
            r#"completed "It says: x" {"backend":"claude-code","session":"s-1"}"#,
        ],
    );
}

#[test]
fn an_answer_of_claude_code_that_is_an_error_is_a_failure() {
    // W29
    let ends = |rest: &str| format!(r#"{{"type":"result","is_error":true,"session_id":"s-1"{rest}}}"#);
    check(
        LocalAgent::ClaudeCode,
        &[
            CLAUDE_STARTS,
            &ends(r#","subtype":"success","result":"API Error: 529 overloaded","api_error_status":529"#),
        ],
        0,
        &[
            r#"failed backend_execution_error: Claude Code failed: API Error: 529 overloaded (retryable) {"backend":"claude-code","session":"s-1"}"#,
        ],
    );
    check(
        LocalAgent::ClaudeCode,
        &[&ends(
            r#","subtype":"error_during_execution","errors":["No conversation found with session ID: X"]"#,
        )],
        1,
        &[
            r#"failed backend_execution_error: Claude Code failed: No conversation found with session ID: X {"backend":"claude-code","session":"s-1"}"#,
        ],
    );
}

#[test]
fn claude_code_whose_key_is_refused_is_stopped_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "echo '{CLAUDE_STARTS}'; echo '{}'; echo $$ > pid; while :; do sleep 1000; done",
        r#"{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"error_status":401,"error":"authentication_failed"}"#
    );
    let played = Played::script(LocalAgent::ClaudeCode, folder, &script);
    assert_eq!(
        played.told().lines().collect::<Vec<_>>(),
        [
            r#"note "its provider is called again (authentication_failed, HTTP status 401)""#,
            r#"failed backend_execution_error: Claude Code failed: its provider refuses its key (authentication_failed, HTTP status 401); check it, or log in with `claude` (final) {"backend":"claude-code","session":"s-1"}"#,
        ]
    );
}

const CODEX_STARTS: &str = r#"{"type":"thread.started","thread_id":"t-1"}"#;

#[test]
fn codex_is_told_as_it_goes_and_its_warnings_are_notes() {
    check(
        LocalAgent::Codex,
        &[
            CODEX_STARTS,
            r#"{"type":"item.completed","item":{"id":"item_0","type":"error","message":"Model metadata not found."}}"#,
            r#"{"type":"turn.started"}"#,
            r#"{"type":"item.completed","item":{"id":"item_1","type":"reasoning","text":"Hm."}}"#,
            r#"{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"Let me look."}}"#,
            r#"{"type":"item.started","item":{"id":"item_3","type":"command_execution","command":"cat x","aggregated_output":"","exit_code":null,"status":"in_progress"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_3","type":"command_execution","command":"cat x","aggregated_output":"no x\n","exit_code":1,"status":"completed"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_4","type":"mcp_tool_call","server":"fs","tool":"read","arguments":{"path":"y"},"result":{"content":[]},"status":"completed"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_5","type":"of_tomorrow"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_6","type":"agent_message","text":"There is none."}}"#,
            r#"{"type":"turn.completed","usage":{"input_tokens":200,"cached_input_tokens":50,"cache_write_input_tokens":0,"output_tokens":40,"reasoning_output_tokens":8}}"#,
        ],
        0,
        &[
            r#"note "Model metadata not found.""#,
            r#"thinks "Hm.""#,
            r#"text "Let me look.""#,
            r#"text "\n\n""#,
            r#"call item_3 command_execution {"command":"cat x"}"#,
            r#"result item_3 failed "no x\n""#,
            r#"call item_4 fs.read {"path":"y"}"#,
            r#"result item_4 "{\"content\":[]}""#,
            r#"note "{\"type\":\"item.completed\",\"item\":{\"id\":\"item_5\",\"type\":\"of_tomorrow\"}}""#,
            r#"text "There is none.""#,
            r#"usage {"input":150,"output":40,"cacheRead":50,"cacheWrite":0,"reasoning":8,"totalTokens":240}"#,
            r#"completed "There is none." {"backend":"codex","session":"t-1","used":{"input":150,"output":40,"cacheRead":50,"cacheWrite":0,"reasoning":8,"totalTokens":240}}"#,
        ],
    );
}

#[test]
fn an_error_of_codex_is_final_when_its_turn_has_failed() {
    let message = "unexpected status 401 Unauthorized: invalid key";
    let retry = r#"{"type":"error","message":"Reconnecting... 1/5"}"#;
    check(
        LocalAgent::Codex,
        &[CODEX_STARTS, retry, &format!(r#"{{"type":"turn.failed","error":{{"message":"{message}"}}}}"#)],
        1,
        &[
            r#"note "Reconnecting... 1/5""#,
            &format!(
                r#"failed backend_execution_error: Codex failed: {message} (final) {{"backend":"codex","session":"t-1"}}"#
            ),
        ],
    );
    check(
        LocalAgent::Codex,
        &[
            CODEX_STARTS,
            retry,
            r#"{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"Done."}}"#,
            r#"{"type":"turn.completed"}"#,
        ],
        0,
        &[
            r#"note "Reconnecting... 1/5""#,
            r#"text "Done.""#,
            r#"completed "Done." {"backend":"codex","session":"t-1"}"#,
        ],
    );
}

const GEMINI_STARTS: &str = r#"{"type":"init","timestamp":"t","session_id":"s-1","model":"m"}"#;

#[test]
fn gemini_is_told_as_it_goes_and_its_answer_is_what_comes_last() {
    check(
        LocalAgent::Gemini,
        &[
            GEMINI_STARTS,
            r#"{"type":"message","role":"user","content":"Go."}"#,
            r#"{"type":"message","role":"assistant","content":"Let me look.","delta":true}"#,
            r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"c-1","parameters":{"command":"cat x"}}"#,
            r#"{"type":"tool_result","tool_id":"c-1","status":"error","error":{"type":"denied","message":"blocked"}}"#,
            r#"{"type":"message","role":"assistant","content":"It is ","delta":true}"#,
            r#"{"type":"message","role":"assistant","content":"blocked.","delta":true}"#,
            r#"{"type":"result","status":"success","stats":{"total_tokens":240,"input_tokens":200,"output_tokens":40,"cached":20,"input":180,"tool_calls":1}}"#,
        ],
        0,
        &[
            r#"text "Let me look.""#,
            r#"text "\n\n""#,
            r#"call c-1 run_shell_command {"command":"cat x"}"#,
            r#"result c-1 failed "blocked""#,
            r#"text "It is ""#,
            r#"text "blocked.""#,
            r#"usage {"input":180,"output":40,"cacheRead":20,"totalTokens":240}"#,
            r#"completed "It is blocked." {"backend":"gemini","session":"s-1"}"#,
        ],
    );
}

#[test]
fn a_failure_of_gemini_is_told_in_its_words() {
    check(
        LocalAgent::Gemini,
        &[
            GEMINI_STARTS,
            r#"{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: 401]"},"stats":{"total_tokens":0}}"#,
        ],
        145,
        &[
            r#"failed backend_execution_error: Gemini CLI failed: [API Error: 401] {"backend":"gemini","session":"s-1"}"#,
        ],
    );
    check(
        LocalAgent::Gemini,
        &[GEMINI_STARTS],
        42,
        &[
            r#"failed backend_execution_error: Gemini CLI exited with code 42. (retryable) {"backend":"gemini","session":"s-1"}"#,
        ],
    );
}

fn opencode_step(reason: &str, cost: &str) -> String {
    format!(
        r#"{{"type":"step_finish","sessionID":"ses_1","part":{{"reason":"{reason}","tokens":{{"total":130,"input":100,"output":20,"reasoning":0,"cache":{{"write":0,"read":10}}}},"cost":{cost}}}}}"#
    )
}

#[test]
fn opencode_is_told_step_by_step_and_its_steps_are_summed() {
    check(
        LocalAgent::OpenCode,
        &[
            r#"{"type":"step_start","sessionID":"ses_1","part":{"type":"step-start"}}"#,
            r#"{"type":"tool_use","sessionID":"ses_1","part":{"type":"tool","tool":"bash","callID":"call_1","state":{"status":"completed","input":{"command":"cat x"},"output":"x\n","metadata":{"exit":0}}}}"#,
            &opencode_step("tool-calls", "0.001"),
            r#"{"type":"text","sessionID":"ses_1","part":{"type":"text","text":"It says x."}}"#,
            &opencode_step("stop", "0.002"),
        ],
        0,
        &[
            r#"call call_1 bash {"command":"cat x"}"#,
            r#"result call_1 "x\n""#,
            r#"usage {"input":100,"output":20,"cacheRead":10,"cacheWrite":0,"reasoning":0,"totalTokens":130,"cost":{"total":0.001}}"#,
            r#"text "It says x.""#,
            r#"usage {"input":200,"output":40,"cacheRead":20,"cacheWrite":0,"reasoning":0,"totalTokens":260,"cost":{"total":0.003}}"#,
            r#"completed "It says x." {"backend":"opencode","session":"ses_1"}"#,
        ],
    );
}

#[test]
fn no_cost_is_no_cost_of_nothing() {
    let told = Played::printing(LocalAgent::OpenCode, &[&opencode_step("stop", "0")], 0).told();
    assert!(!told.contains("cost"), "{told}");
}

#[test]
fn a_failure_of_opencode_is_told_in_its_words() {
    check(
        LocalAgent::OpenCode,
        &[
            r#"{"type":"error","sessionID":"ses_1","error":{"name":"APIError","data":{"message":"invalid key","statusCode":401,"isRetryable":false}}}"#,
        ],
        1,
        &[
            r#"failed backend_execution_error: opencode failed: invalid key (final) {"backend":"opencode","session":"ses_1"}"#,
        ],
    );
}

#[test]
fn an_agent_that_ends_without_an_end_has_not_answered() {
    let agents = [LocalAgent::ClaudeCode, LocalAgent::Codex, LocalAgent::Gemini, LocalAgent::OpenCode];
    for agent in agents {
        let told = Played::printing(agent, &["hello"], 0).told();
        let malformed = format!("failed invalid_backend_output: {agent} returned malformed output.");
        assert_eq!(told.lines().collect::<Vec<_>>(), [r#"note "hello""#, &malformed]);
    }
    let untyped = Played::printing(LocalAgent::ClaudeCode, &[r#"{"text":"hello"}"#], 0).told();
    assert!(untyped.ends_with("failed invalid_backend_output: Claude Code returned malformed output."));
}

#[test]
fn an_agent_whose_arguments_are_wrong_is_not_tried_again() {
    let wrong = "failed backend_execution_error: Codex exited with code 2. (final)";
    check(LocalAgent::Codex, &[], 2, &[wrong]);
    let failed = "failed backend_execution_error: Codex exited with code 1. (retryable)";
    check(LocalAgent::Codex, &[], 1, &[failed]);
}

#[test]
fn a_script_answers_in_plain_text() {
    check(LocalAgent::Bash, &["  hello ", ""], 0, &[r#"completed "hello""#]);
}

#[test]
fn calls_and_what_was_used_stand_in_the_result() {
    let lines = [
        CLAUDE_STARTS,
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"c","name":"Read","input":{"n":1.50}}]}}"#,
        r#"{"type":"user","message":{"content":[{"tool_use_id":"c","type":"tool_result","content":"no","is_error":true}]}}"#,
        CLAUDE_ENDS,
    ];
    let result = execute(&Played::printing(LocalAgent::ClaudeCode, &lines, 0).backend, request("go"));
    let output = result.output.unwrap();
    assert_eq!(
        output.structured.unwrap().text(),
        r#"{"toolCalls":[{"id":"c","name":"Read","input":{"n":1.50}}]}"#
    );
    assert_eq!(
        result.metadata.unwrap().text(),
        r#"{"sessionId":"s-1","usage":{"input":200,"output":40,"cacheRead":10,"cacheWrite":5,"totalTokens":255,"cost":{"total":0.0012}},"model":"m","version":"2.1.197","turns":2,"ended":"success","stopReason":"end_turn"}"#
    );
    let trace = result.trace.unwrap();
    assert_eq!(trace.summary.tool_call_count, Some(1));
    let kinds: Vec<_> =
        trace.events.unwrap().iter().map(|event| serde_json::to_string(&event.kind).unwrap()).collect();
    assert_eq!(kinds.join(" "), r#""model_started" "tool_requested" "tool_completed" "model_completed""#);
}

/// Calls off what it listens to as soon as it hears of a tool.
struct CallsOff(Cancel);

impl ExecutionSink for CallsOff {
    fn part(&self, part: ExecutionPart) {
        if matches!(part, ExecutionPart::ToolStarted { .. }) {
            self.0.cancel();
        }
    }
}

#[test]
fn an_agent_that_is_called_off_leaves_what_it_said_its_session_and_no_process() {
    // W26
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "trap '' TERM; (while :; do sleep 1000; done) & echo $$ $! > pids; echo '{CLAUDE_STARTS}'; echo '{}'; \
         echo '{}'; while :; do wait; done",
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Let me look."}]}}"#,
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"c","name":"Read","input":{}}]}}"#,
    );
    let played = Played::script(LocalAgent::ClaudeCode, folder, &script);
    let cancel = Cancel::new();
    let sink = CallsOff(cancel.clone());
    let result = block_on(async {
        let work = played.backend.execute(request("Go."), ExecutionCx::new(&sink, &cancel));
        tokio::time::timeout(Duration::from_mins(1), work).await.unwrap()
    });
    assert_eq!((result.status, result.text()), (ExecutionStatus::Failed, "Let me look."));
    assert_eq!(result.error.unwrap().message, "Claude Code was stopped: the run was cancelled.");
    assert!(result.continuation.unwrap().state.unwrap().text().contains("s-1"));
    assert!(played.file("pids").split_whitespace().all(gone));
}

#[test]
fn a_version_that_is_too_old_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        "case \"$1\" in --version) echo '1.0.3 (Claude Code)';; *) echo unknown option >&2; exit 1;; esac";
    let told = Played::script(LocalAgent::ClaudeCode, folder, script).told();
    assert_eq!(
        told,
        "failed backend_execution_error: Claude Code 1.0.3 is too old, 2.0.0 or newer is needed: install it with \
         `npm install -g @anthropic-ai/claude-code`. (Claude Code exited with code 1: unknown option) (final)"
    );
}
