//! Sessions of agents from one request to the next, and what agents are given.

use harness_adapters::execution::{ExecutionAdapter as _, ExecutionTool};
use harness_adapters::local::{AgentBackend, LocalAgent, Permission};
use harness_core::Json;

use super::{Played, clock, environment, execute, request, summary};

fn continuation(state: &str) -> Option<harness_adapters::execution::ExecutionContinuation> {
    Json::parse(&format!(r#"{{"kind":"session","state":{state}}}"#)).unwrap().to().ok()
}

#[track_caller]
fn check(agent: LocalAgent, state: Option<&str>, expected: &[&str]) {
    let mut request = request("--help");
    request.continuation = state.and_then(continuation);
    let backend =
        AgentBackend::new(agent, &environment(), clock()).model("m-1").permission(Permission::WriteFiles);
    let invocation = backend.adapter().invocation(&request).unwrap();
    assert_eq!(invocation.args, expected);
    let prompt = invocation.stdin.unwrap();
    assert!(prompt.ends_with("User message:\n--help"), "{prompt}");
    let system = invocation.args.iter().any(|arg| arg.to_string_lossy().contains("Be brief."));
    assert!(system != prompt.contains("Instructions:\nBe brief.") || agent == LocalAgent::Bash);
}

#[test]
fn each_agent_is_given_its_prompt_by_stdin() {
    let claude =
        ["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages", "--model=m-1"];
    let more = ["--append-system-prompt=Be brief.", "--permission-mode=acceptEdits"];
    check(LocalAgent::ClaudeCode, None, &[&claude[..], &more].concat());
    let sandbox = "--config=sandbox_mode=\"workspace-write\"";
    check(LocalAgent::Codex, None, &["exec", "--json", "--skip-git-repo-check", sandbox, "--model=m-1", "-"]);
    check(LocalAgent::OpenCode, None, &["run", "--format", "json", "--model=m-1"]);
    let gemini =
        ["--output-format", "stream-json", "--skip-trust", "--approval-mode=auto_edit", "--model=m-1"];
    check(LocalAgent::Gemini, None, &gemini);
    check(LocalAgent::Bash, None, &["-c", "cat"]);
}

#[test]
fn a_session_goes_on_with_its_id() {
    let resumed = |agent: LocalAgent| {
        let mut next = request("more");
        next.continuation =
            continuation(&format!(r#"{{"backend":"{}","session":"s-1"}}"#, agent.backend_id()));
        let backend = AgentBackend::new(agent, &environment(), clock());
        let args = backend.adapter().invocation(&next).unwrap().args;
        args.into_iter().map(|arg| arg.into_string().unwrap()).collect::<Vec<_>>().join(" ")
    };
    assert!(resumed(LocalAgent::ClaudeCode).ends_with("--resume=s-1"));
    assert!(resumed(LocalAgent::Codex).starts_with("exec resume --json"));
    assert!(resumed(LocalAgent::Codex).ends_with("s-1 -"));
    assert!(resumed(LocalAgent::OpenCode).ends_with("--session=s-1"));
    assert!(resumed(LocalAgent::Gemini).ends_with("--resume=s-1"));
}

#[test]
fn a_session_of_another_backend_and_an_id_that_is_none_are_refused() {
    #[track_caller]
    fn check(state: &str, expected: &str) {
        let mut request = request("more");
        request.continuation = continuation(state);
        let result = execute(&AgentBackend::new(LocalAgent::Codex, &environment(), clock()), request);
        assert_eq!(summary(&result), expected);
    }
    check(
        r#"{"backend":"gemini","session":"s"}"#,
        "failed other: Codex cannot continue a session of `gemini`: give the request to that backend, or leave \
         its continuation out (`codex` begins a new session then). (final)",
    );
    let none = "failed other: Codex cannot continue: the session id in the continuation is invalid. (final)";
    for id in ["--last", "", "a b", "a\\nb"] {
        check(&format!(r#"{{"backend":"codex","session":"{id}"}}"#), none);
    }
}

#[test]
fn usage_of_codex_is_that_of_the_turn() {
    let turn = |input: u32| {
        format!(
            r#"{{"type":"turn.completed","usage":{{"input_tokens":{input},"cached_input_tokens":40,"output_tokens":40}}}}"#
        )
    };
    let first = [r#"{"type":"thread.started","thread_id":"t-1"}"#, &turn(200)];
    let first = execute(&Played::printing(LocalAgent::Codex, &first, 0).backend, request("one"));
    let mut next = request("two");
    next.continuation = first.continuation;
    let second = [r#"{"type":"thread.started","thread_id":"t-1"}"#, &turn(300)];
    let played = Played::printing(LocalAgent::Codex, &second, 0);
    let second = execute(&played.backend, next);
    assert_eq!(
        second.metadata.unwrap().text(),
        r#"{"sessionId":"t-1","usage":{"input":100,"output":0,"cacheRead":0,"totalTokens":100}}"#
    );
    assert!(played.file("args").starts_with("exec\nresume\n"));
}

#[test]
fn tools_are_those_of_claude_code_and_no_other_is_passed_any() {
    let mut request = request("go");
    request.tools = Some(vec![ExecutionTool::new(" Read "), ExecutionTool::new("Bash(git *)")]);
    let backend = |agent| AgentBackend::new(agent, &environment(), clock());
    let claude = backend(LocalAgent::ClaudeCode);
    assert!(!claude.negotiate(&request).degraded);
    let args = claude.adapter().invocation(&request).unwrap().args;
    assert!(args.iter().any(|arg| arg == "--allowedTools=Read,Bash(git *)"), "{args:?}");
    let args = claude.permission(Permission::Everything).adapter().invocation(&request).unwrap().args;
    let allowed = args.iter().find_map(|arg| arg.to_str()?.strip_prefix("--allowedTools=")).unwrap();
    assert!(allowed.starts_with("Bash,Edit,") && allowed.ends_with(",Write,Read,Bash(git *)"), "{allowed}");
    let codex = backend(LocalAgent::Codex).negotiate(&request);
    assert!(codex.supported && codex.degraded);
    assert_eq!(codex.describe(), "Codex uses its own tools; those of the request are not passed on.");
}
