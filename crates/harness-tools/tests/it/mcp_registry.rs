//! MCP servers in a registry file, and their tools beside others.

use std::path::Path;
use std::sync::Arc;

use harness_core::Json;
use harness_core::message::ToolCall;
use harness_core::tool::{DynTool, Tool, ToolCx, ToolDef, ToolOutcome, ToolRegistry, ToolScope, Toolbox};
use harness_host::process::Environment;
use harness_tools::mcp::{McpSpec, McpTransport};
use harness_tools::{Binding, Combined, Registry};
use serde_json::json;

use crate::mcp_peer::{read_file, run, server};
use crate::support::told;

fn parse(text: &str) -> Result<Registry, harness_tools::ToolsError> {
    let environment = Environment::from_iter([("PATH", "/usr/bin:/bin"), ("TOKEN", "s3cret-token")]);
    Registry::parse(text, Path::new("/etc/registry.yaml"), &environment)
}

const FILE: &str = "
version: 1
tools:
  files:
    mcp:
      command: [sh, -c, 'echo hi']
      cwd: /tmp
      env: { MODE: read-only }
      env_pass: [TOKEN]
      connect_timeout: 3s
      trust_annotations: true
    timeout: 7s
    max_output: 1KiB
    requires_approval: true
  web:
    mcp:
      url: https://example.com/mcp?key=abc
      headers: { X-Team: blue }
      headers_env: { X-Token: TOKEN }
      bearer_env: TOKEN
";

#[test]
fn a_file_names_servers_with_their_bounds() {
    let registry = parse(FILE).unwrap();
    let [files, web] = &registry.servers().collect::<Vec<_>>()[..] else { panic!("two servers") };
    let spec = files.spec();
    assert_eq!((files.id(), files.namespace()), ("files", "files__"));
    assert_eq!((spec.connect_timeout.as_secs(), spec.timeout.as_secs(), spec.max_output), (3, 7, 1024));
    assert!(spec.trust_annotations && spec.requires_approval && !spec.sequential);
    let McpTransport::Stdio(program) = &spec.transport else { panic!("{spec:?}") };
    assert_eq!(program.path, "sh");
    assert_eq!(program.args, ["-c", "echo hi"]);
    assert_eq!(program.environment().get("TOKEN").unwrap(), "s3cret-token");
    assert_eq!(program.env.get("MODE").unwrap(), "read-only");
    let McpTransport::Http(http) = &web.spec().transport else { panic!("{web:?}") };
    let header =
        |name: &str| http.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    assert_eq!(header("X-Token"), Some("s3cret-token"));
    assert_eq!(header("Authorization"), Some("Bearer s3cret-token"));
    assert_eq!(registry.problems(), []);
}

#[test]
fn secrets_are_not_printed() {
    let text = format!("{:?}", parse(FILE).unwrap().servers().collect::<Vec<_>>());
    let text = text + &format!("{:?}", McpSpec::http("https://user:pass@example.com/mcp"));
    for secret in ["s3cret", "pass@", "key=abc", "blue"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert!(text.contains("https://example.com/mcp") && text.contains("X-Token"), "{text}");
}

#[test]
fn fault_13_an_address_with_a_password_is_refused() {
    let text = "version: 1\ntools:\n  a: { mcp: { url: 'https://user:PASSWORD@h/mcp' } }\n";
    let fault = parse(text).unwrap_err();
    assert!(fault.to_string().contains("the URL contains a user name or password"), "{fault}");
    assert!(!fault.to_string().contains("PASSWORD"), "{fault}");
}

#[test]
fn a_target_is_one_tool_of_a_server_or_all_of_them() {
    #[track_caller]
    fn check(target: &str, expected: &str) {
        let text =
            "version: 1\ntools:\n  a: { mcp: { url: 'http://h/' } }\n  a.b: { mcp: { url: 'http://h/' } }\n";
        let told = match parse(text).unwrap().binding(target) {
            Ok(Binding::One { name, .. }) => name.to_string(),
            Ok(Binding::All(source)) => format!("all of {}", source.namespace()),
            Ok(other) => format!("{other:?}"),
            Err(error) => format!("{} {}", error, error.hint().unwrap_or_default()),
        };
        assert_eq!(told, expected);
    }
    check("a.read", "a__read");
    check("a.*", "all of a__");
    check("a.b.read", "a_b__read");
    let unbound = |target| format!("tool target `{target}` is not bound in registry /etc/registry.yaml");
    check("a", &format!("{} did you mean `a.*`?", unbound("a")));
    check("c.read", &format!("{} add it under `tools`; available: `a.*` and `a.b.*`", unbound("c.read")));
}

#[test]
fn what_is_wrong_with_an_entry_is_told_with_its_place() {
    let text = "
version: 1
tools:
  a: { mcp: {} }
  b: { mcp: [x], command: tr }
  c: { mcp: { command: npx } }
  d: { mcp: { command: [] } }
  e: { mcp: { command: [x], url: 'http://h/' } }
  f: { mcp: { url: 'ftp://h/', headers: [x], comand: 1 } }
  f_: { mcp: { url: 'http://h/', connect_timeout: 5 } }
  g: { mcp: { command: [x], env: { HARNESS_X: '1' } }, class: pure }
";
    insta::assert_snapshot!(parse(text).unwrap_err(), @r"
    /etc/registry.yaml:4:8: missing `command` or `url` in tools.a.mcp; write `command: [PROGRAM, ARGUMENT]` or `url: ADDRESS` below it
    /etc/registry.yaml:5:13: tools.b.mcp must be a mapping, not a list; write `command: [PROGRAM, ARGUMENT]` or `url: ADDRESS` below it
    /etc/registry.yaml:5:18: unknown key `command` in tools.b; expected `mcp`, `timeout`, `max_output`, `requires_approval` or `sequential`
    /etc/registry.yaml:6:24: tools.c.mcp.command must be a list of strings, not `npx`; write it as a list: `[a, b]`
    /etc/registry.yaml:7:24: tools.d.mcp.command: no program given; write it as `[PROGRAM, ARGUMENT]`
    /etc/registry.yaml:8:29: `command` and `url` exclude each other; remove one of them
    /etc/registry.yaml:9:20: tools.f.mcp.url: not an HTTP address; start it with `https://`
    /etc/registry.yaml:9:41: tools.f.mcp.headers must be a mapping, not a list; write it as `{ NAME: value }`
    /etc/registry.yaml:9:46: unknown key `comand` in tools.f.mcp; expected `url`, `headers`, `headers_env`, `bearer_env`, `connect_timeout` or `trust_annotations`
    /etc/registry.yaml:10:3: tool names of `f_` would have the same prefix as those of `f`; choose a name that differs in letters or digits
    /etc/registry.yaml:10:51: tools.f_.mcp.connect_timeout must be a duration of at most 1h, not `5`; write a number with `ms`, `s`, `m` or `h`, such as `500ms` or `90s`
    /etc/registry.yaml:11:36: the variable `HARNESS_X` is reserved; names that start with `HARNESS_` are set by the program itself
    /etc/registry.yaml:11:56: unknown key `class` in tools.g; expected `mcp`, `timeout`, `max_output`, `requires_approval` or `sequential`
    ");
}

#[test]
fn what_this_machine_lacks_is_told() {
    let text = "
version: 1
tools:
  a: { mcp: { command: [no-such-program], cwd: /no/such/folder, env_pass: [ABSENT] } }
  b: { mcp: { url: 'http://h/', bearer_env: ABSENT, headers_env: { X: ALSO_ABSENT } } }
";
    let registry = parse(text).unwrap();
    let told: Vec<String> = registry.problems().iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    /etc/registry.yaml:4:48: tool target `a`: directory `/no/such/folder` does not exist; create it, or correct `cwd`
    /etc/registry.yaml:4:24: tool target `a`: program `no-such-program` not found in PATH; install it, or write its path in `command`
    /etc/registry.yaml:4:75: tool target `a`: the variable `ABSENT` is not set; set it, or remove it from `env_pass`
    /etc/registry.yaml:5:66: tool target `b`: the variable `ALSO_ABSENT` is not set; set it, or remove it from `headers_env`
    /etc/registry.yaml:5:45: tool target `b`: the variable `ABSENT` is not set; set it, or remove it from `bearer_env`
    ");
    let fault = run(registry.servers().last().unwrap().tools()).unwrap_err();
    insta::assert_snapshot!(fault, @r"
    cannot use MCP server `b`: the variable `ALSO_ABSENT`, from which a header comes, is not set
    ");
}

#[test]
fn a_server_is_tried_only_when_that_is_asked_for() {
    let text = "
version: 1
tools:
  a: { mcp: { command: [sh, -c, 'echo broken >&2; exit 3'] } }
  unused: { mcp: { command: [sh, -c, 'exit 4'] } }
";
    let registry = parse(text).unwrap();
    assert_eq!(registry.problems(), []);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let problems = runtime.block_on(registry.try_servers(["a.read", "a.*", "other"]));
    let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    /etc/registry.yaml:4:13: tool target `a`: cannot use MCP server `a`: its program ended: exit code 3; its stderr says "broken"; run the command in a shell to see why it ends
    "#);
}

struct Greet(ToolDef);

impl Tool for Greet {
    fn def(&self) -> &ToolDef {
        &self.0
    }

    async fn call(&self, _: ToolCx) -> ToolOutcome {
        ToolOutcome::text("hello")
    }
}

fn greet() -> Arc<dyn DynTool> {
    Arc::new(Greet(ToolDef::new("greet", "Greets")))
}

fn call(name: &str) -> ToolCx {
    ToolCx::for_call(Arc::new(ToolCall::new("call-7", name, Json::empty_object())))
}

#[test]
fn tools_of_servers_stand_beside_others() {
    let (server, mut door) = server(|_| {});
    let combined = Combined::new(Toolbox::new([greet()]), [server.source(), server.source()]);
    let all = ToolScope::new(Arc::default(), None);
    run(async {
        let (listed, mut peer) = tokio::join!(combined.list(&all), door.serve(read_file()));
        let names: Vec<_> = listed.unwrap().iter().map(|def| def.name.to_string()).collect();
        assert_eq!(names, ["greet", "files__read_file"]);
        assert_eq!(told(&combined.call(call("greet")).await.unwrap()), "success\nhello");
        let answer = async {
            let asked = peer.expect("tools/call").await;
            peer.reply(&asked, json!({"content": [{"type": "text", "text": "read"}]})).await;
        };
        assert_eq!(
            combined.call(call("files__other")).await.unwrap().error.unwrap().code,
            "mcp_unknown_tool"
        );
        let cx = crate::mcp_peer::cx("files__read_file", r#"{"path":"a"}"#);
        let (outcome, ()) = tokio::join!(combined.call(cx), answer);
        assert_eq!(told(&outcome.unwrap()), "success\nread");
        assert_eq!(combined.call(call("absent")).await.unwrap_err().code.as_ref(), "tool_missing");
    });
}

#[test]
fn a_server_is_not_connected_to_for_an_agent_that_does_not_use_it() {
    let (server, mut door) = server(|_| {});
    let combined = Combined::new(Toolbox::new([greet()]), [server.source()]);
    let scope = ToolScope::new(Arc::default(), Some(["greet".into()].into()));
    let listed = run(combined.list(&scope)).unwrap();
    assert_eq!(listed.len(), 1);
    assert!(door.is_quiet());
}

#[test]
fn a_server_that_cannot_be_reached_ends_the_turn_with_the_reason() {
    let (server, door) = server(|_| {});
    drop(door);
    let combined = Combined::new(Toolbox::new([]), [server.source()]);
    let fault = run(combined.list(&ToolScope::new(Arc::default(), None))).unwrap_err();
    insta::assert_snapshot!(format!("{} {}", fault.code, fault.message), @r"
    tools.mcp_not_opened cannot use MCP server `files`: the streams to it could not be opened: nobody is at the door
    ");
}
