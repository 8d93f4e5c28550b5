//! The chat as a person has it: the real program at a terminal, keys in, screens out.

use serde_json::{Value, json};

use crate::EXAMPLE;
use crate::support::{Answer, Person, Project, Reply, Server, harness, root};

const DESCRIPTOR: &str = "\
metadata: { name: till }
runtime: { entry_agent: clerk }
tools:
  pay: { target: till.pay }
  wait: { target: till.wait }
agents:
  clerk:
    name: Clerk
    instructions: You are at the till.
    model: scripted
    tools: [pay, wait]
";

/// `wait` runs until the file `go` is there.
const REGISTRY: &str = "\
version: 1
tools:
  till.pay:
    name: pay
    description: Pays something.
    command: sh
    args: [-c, echo paid | tee -a paid]
    class: unsafe
    requires_approval: true
  till.wait:
    name: wait
    description: Waits for somebody.
    command: sh
    args: [-c, 'while [ ! -e go ]; do sleep 0.05; done; echo here']
    timeout: 120s
    class: pure
";

/// A skill, whose instructions the model does not know before it is loaded.
const SKILL: &str = "---\nname: tidy\ndescription: How the till is tidied.\n---\nSweep the hall.\n";

/// A prompt template.
const TEMPLATE: &str = "---\ndescription: Says hello\nargument-hint: <name>\n---\nGood day, $1!\n";

const ESCAPE: &str = "\u{1b}";
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

fn call(id: &str, name: &str, arguments: &Value) -> Reply {
    Reply::Stream(Answer::call(id, name, arguments))
}

type Respond = fn() -> Reply;

/// Answers by what was said last.
fn answer(request: &Value) -> Reply {
    let replies: [(&str, Respond); 11] = [
        ("Please pay", || call("p1", "pay", &json!({ "amount": 5 }))),
        ("paid", || Reply::text("It is paid.")),
        ("Please wait", || call("w1", "wait", &json!({}))),
        ("Be brief", || Reply::text("Brief it is.")),
        ("Think for ever", Reply::silence),
        ("Good day, Ada!", || Reply::text("Good day to you.")),
        ("Please tidy up", || call("s1", "load_skill", &json!({ "name": "tidy" }))),
        ("Sweep the hall.", || Reply::text("It is swept.")),
        ("the cellar", || Reply::text("The cellar is swept.")),
        ("Still there?", || Reply::text("Still here.")),
        ("What did I say first?", || Reply::text("You said: Please pay.")),
    ];
    let body = request.to_string();
    let found = replies.iter().filter_map(|(said, reply)| Some((body.rfind(said)?, reply)));
    // A denied or a plain result has nothing of the above behind it.
    found.max_by_key(|(at, _)| *at).map_or_else(|| Reply::text("I do not know."), |(_, reply)| reply())
}

/// A folder with the descriptor, its tools, a skill and a template.
fn project() -> Project {
    Project::of(&[
        ("harness.yaml", DESCRIPTOR),
        ("registry.yaml", REGISTRY),
        (".harness/skills/tidy/SKILL.md", SKILL),
        (".harness/templates/greet.md", TEMPLATE),
    ])
}

fn sit_down(project: &Project, server: &Server, more: &[&str], rows: u16, columns: u16) -> Person {
    let chat = ["chat", "harness.yaml", "--base-url", &server.url];
    let mut command = project.command(&[&chat, more].concat());
    command.env("HOME", project.path());
    Person::sit_down(command, rows, columns)
}

/// The state row of a chat that is not at work, where Ctrl-C drops what was begun instead of interrupting.
const IDLE: &str = "\nscripted · ";

#[track_caller]
fn leaves_well(person: Person) -> String {
    let (code, shown) = person.leaves();
    assert_eq!(code, Some(0), "{shown}");
    shown
}

#[test]
fn the_shipped_example_is_answered_without_a_key() {
    let home = tempfile::tempdir().unwrap();
    let mut command = harness(&root(), &["chat", EXAMPLE]);
    command.env("HOME", home.path());
    let person = Person::sit_down(command, 30, 100);
    person.sees("no API key set: using the rule-based demo model").sees("/help for commands");
    person.says("Where is my order 1042?").sees("✓ track_parcel").sees("NP-77342");
    // The conversation was handed over, and is handed over once more.
    person.says("Please refund order 1041.").sees("refunded already").types(CTRL_D);
    assert!(leaves_well(person).contains("--continue"));
}

#[test]
fn a_conversation_is_steered_interrupted_and_continued() {
    let (project, server) = (project(), Server::by(answer));
    let person = sit_down(&project, &server, &[], 30, 100);
    person.sees("templates: /greet").sees("skills: tidy").sees("/help for commands");
    approval(&person, &project);
    steering(&person, &project);
    interruption(&person);
    skills_and_templates(&person);
    person.types("/quit").types("\r");
    assert!(leaves_well(person).contains("continue with: harness chat harness.yaml --continue"));
    again(&project, &server);
}

/// A call is asked about and allowed.
fn approval(person: &Person, project: &Project) {
    person.says("Please pay").sees("? pay {\"amount\":5}").sees("y once · a always … · n no");
    person.types("y").sees("✓ pay").sees("It is paid.");
    assert!(project.path().join("paid").exists(), "the approved call ran");
}

/// A message that is sent while a tool runs is shown as queued, and delivered before the next answer.
fn steering(person: &Person, project: &Project) {
    person.says("Please wait").sees("Esc interrupts").sees("wait ");
    person.says("Be brief").sees("queued: Be brief");
    project.write("go", "");
    person.sees("✓ wait").sees("› Be brief").sees("Brief it is.").loses("queued:");
}

/// A model that says nothing is interrupted, and the conversation goes on.
fn interruption(person: &Person) {
    person.says("Think for ever").sees("thinking");
    person.types(ESCAPE).sees("■ interrupted").loses("Esc interrupts");
    person.says("Still there?").sees("Still here.");
}

/// A template is completed and sent, a skill is loaded by the model and asked for by name.
fn skills_and_templates(person: &Person) {
    person.types("/gre").types("\t").sees("› /greet");
    person.says("Ada").sees("› Good day, Ada!").sees("Good day to you.");
    person.says("Please tidy up").sees("✓ load_skill").sees("It is swept.");
    person.says("/skills").sees("(.harness/skills/tidy/SKILL.md)");
    person.says("/skill:tidy the cellar").sees("The cellar is swept.");
}

/// The conversation goes on in another chat.
fn again(project: &Project, server: &Server) {
    let person = sit_down(project, server, &["--continue"], 30, 100);
    person.sees("/skill:tidy the cellar").says("What did I say first?").sees("You said: Please pay.");
    // What was begun is dropped by Ctrl-C; pressed again it would leave.
    // While the model works, Ctrl-C would interrupt it.
    person.sees(IDLE).types("a draft").sees("› a draft").types(CTRL_C).loses("› a draft");
    person.types(CTRL_C).sees("press Ctrl-C again to exit").types(CTRL_C);
    leaves_well(person);
}

#[test]
fn a_narrow_terminal_without_colours_becomes_wider() {
    let (project, server) = (project(), Server::by(answer));
    let person = sit_down(&project, &server, &["--color", "never"], 12, 30);
    person.sees("/help for commands").says("Still there?").sees("Still here.");
    // A key that comes together with the new size may be read only with the next one.
    person.resizes(30, 100).sees(&"─".repeat(90)).sees(IDLE);
    person.types("a draft that stays").sees("› a draft that stays");
    person.types(CTRL_C).loses("a draft that stays").types(CTRL_D);
    leaves_well(person);
}

#[test]
fn thinking_level_is_sent_and_the_conversation_opens_in_the_pager() {
    let effort = |request: &Value| Reply::text(&format!("effort {}", request["reasoning_effort"]));
    let (project, server) = (project(), Server::by(effort));
    let person = sit_down(&project, &server, &[], 30, 100);
    person.sees("/help for commands").says("/thinking high").sees("\nthinking high");
    person.says("Hello").sees("effort \"high\"").sees("\nscripted · thinking high");
    // Alt-T: the level after the highest one is the model's default.
    person.types(&format!("{ESCAPE}t")).loses("· thinking high").says("Hello again").sees("effort null");
    // While the run ends, Ctrl-C would interrupt it.
    person.sees(IDLE).types("one").types(&format!("{ESCAPE}[13;2u")).types("世界").sees("› one\n  世界");
    person.types(CTRL_C).loses("世界").types("!ls").sees("! ls").sees("runs in your shell");
    person.types(CTRL_C).loses("runs in your shell").says("/copy").sees("copied 11 characters");
    person.types("\u{14}").sees("› Hello\n\neffort \"high\"\n\n› Hello again\n\neffort null\n───");
    person.types(CTRL_D);
    leaves_well(person);
}
