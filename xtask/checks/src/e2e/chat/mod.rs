//! The chat as a person has it: the real program in a real terminal (tmux), keys in, screens out.
//!
//! Nothing here waits for a fixed time: each step waits until the screen shows what it must, or gives up.

mod screen;

use std::fs;
use std::path::Path;

use super::endpoint::Answer::{self, CallWith, Silence, Text};
use super::endpoint::Endpoint;
use super::program::Program;
use screen::Screen;
use xtask::fault::{Fault, Result};
use xtask::repo;

const EXAMPLE: &str = "fixtures/examples/customer-support/harness.yaml";

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

/// Answers by what was said last.
fn answer(body: &str) -> Answer {
    let last = [
        ("Please pay", CallWith { id: "p1", name: "pay", arguments: r#"{"amount":5}"# }),
        ("paid", Text("It is paid.")),
        ("Please wait", CallWith { id: "w1", name: "wait", arguments: "{}" }),
        ("Be brief", Text("Brief it is.")),
        ("Think for ever", Silence),
        ("Good day, Ada!", Text("Good day to you.")),
        ("Please tidy up", CallWith { id: "s1", name: "load_skill", arguments: r#"{"name":"tidy"}"# }),
        ("Sweep the hall.", Text("It is swept.")),
        ("Still there?", Text("Still here.")),
        ("What did I say first?", Text("You said: Please pay.")),
    ];
    let found = last.iter().filter_map(|(said, answer)| Some((body.rfind(said)?, *answer)));
    let newest = found.max_by_key(|(at, _)| *at);
    // A denied or a plain result has nothing of the above behind it.
    newest.map_or(Text("I do not know."), |(_, answer)| answer)
}

pub(super) fn run(program: &Program) -> Result<String> {
    screen::install()?;
    let folder = tempfile::tempdir().map_err(|e| Fault::because("a temporary folder", e))?;
    let home = folder.path();
    fs::write(home.join("harness.yaml"), DESCRIPTOR).map_err(|e| Fault::because("the descriptor", e))?;
    fs::write(home.join("registry.yaml"), REGISTRY).map_err(|e| Fault::because("the registry", e))?;
    let own = home.join(".harness");
    for (folder, file, text) in [("skills/tidy", "SKILL.md", SKILL), ("templates", "greet.md", TEMPLATE)] {
        let folder = own.join(folder);
        fs::create_dir_all(&folder).map_err(|e| Fault::because("a folder of skills or templates", e))?;
        fs::write(folder.join(file), text).map_err(|e| Fault::because("a skill or a template", e))?;
    }
    offline(program, home)?;
    let endpoint = Endpoint::by(answer)?;
    let begin = ["chat", "harness.yaml", "--base-url", &endpoint.url];
    let mut screen = Screen::open(program, home, home, &begin)?;
    screen.sees("templates: /greet")?;
    screen.sees("skills: tidy")?;
    screen.sees("/help shows")?;
    approval(&mut screen, home)?;
    steering(&mut screen, home)?;
    interruption(&mut screen)?;
    skills_and_templates(&mut screen)?;
    screen.types("/quit")?;
    screen.presses("Enter")?;
    screen.sees("go on with: harness chat harness.yaml --continue")?;
    screen.sees_end(0)?;
    again(program, home, &endpoint)?;
    narrow(program, home, &endpoint)?;
    Ok("offline, an approval, steering, an interruption, a skill, a template, quit and --continue, a narrow terminal".to_owned())
}

/// The shipped example without a key.
fn offline(program: &Program, home: &Path) -> Result<()> {
    let root = repo::root();
    let mut screen = Screen::open(program, home, root, &["chat", EXAMPLE])?;
    screen.sees("no API key set: using the demo model")?;
    screen.sees("/help shows")?;
    screen.says("Where is my order 1042?")?;
    screen.sees("✓ track_parcel")?;
    screen.sees("NP-77342")?;
    // The conversation was handed over, and is handed over once more.
    screen.says("Please refund order 1041.")?;
    screen.sees("refunded already")?;
    screen.presses("C-d")?;
    screen.sees("--continue")?;
    screen.sees_end(0)
}

/// A call is asked about, denied for a reason, and allowed the next time.
fn approval(screen: &mut Screen, home: &Path) -> Result<()> {
    screen.says("Please pay")?;
    screen.sees("? pay {\"amount\":5}")?;
    screen.sees("y once · a always … · n no")?;
    screen.presses("y")?;
    screen.sees("✓ pay")?;
    screen.sees("It is paid.")?;
    if home.join("paid").exists() { Ok(()) } else { Err(Fault::new("the approved call did not run")) }
}

/// A message that is sent while a tool runs is shown as queued, and delivered before the next answer.
fn steering(screen: &mut Screen, home: &Path) -> Result<()> {
    screen.says("Please wait")?;
    screen.sees("Esc interrupts")?;
    screen.sees("wait ")?;
    screen.says("Be brief")?;
    screen.sees("queued: Be brief")?;
    fs::write(home.join("go"), "").map_err(|e| Fault::because("the file that ends the tool", e))?;
    screen.sees("✓ wait")?;
    screen.sees("› Be brief")?;
    screen.sees("Brief it is.")?;
    screen.loses("queued:")
}

/// A model that says nothing is interrupted, and the conversation goes on.
fn interruption(screen: &mut Screen) -> Result<()> {
    screen.says("Think for ever")?;
    screen.sees("thinking")?;
    screen.presses("Escape")?;
    screen.sees("■ interrupted")?;
    screen.loses("Esc interrupts")?;
    screen.says("Still there?")?;
    screen.sees("Still here.")
}

/// A template is completed and sent, a skill is loaded by the model and asked for by name.
fn skills_and_templates(screen: &mut Screen) -> Result<()> {
    screen.types("/gre")?;
    screen.presses("Tab")?;
    screen.sees("› /greet")?;
    screen.says("Ada")?;
    screen.sees("› Good day, Ada!")?;
    screen.sees("Good day to you.")?;
    screen.says("Please tidy up")?;
    screen.sees("✓ load_skill")?;
    screen.sees("It is swept.")?;
    screen.says("/skills")?;
    screen.sees("(.harness/skills/tidy/SKILL.md)")?;
    screen.says("/skill:tidy now")?;
    screen.sees("› /skill:tidy now")
}

/// The conversation goes on in another chat.
fn again(program: &Program, home: &Path, endpoint: &Endpoint) -> Result<()> {
    let begin = ["chat", "harness.yaml", "--base-url", &endpoint.url, "--continue"];
    let mut screen = Screen::open(program, home, home, &begin)?;
    screen.sees("/skill:tidy now")?;
    screen.says("What did I say first?")?;
    screen.sees("You said: Please pay.")?;
    // What was begun is dropped by Ctrl-C; pressed again it would leave.
    screen.types("a draft")?;
    screen.presses("C-c")?;
    screen.loses("› a draft")?;
    screen.presses("C-c")?;
    screen.sees("press Ctrl-C again to leave")?;
    screen.presses("C-c")?;
    screen.sees_end(0)
}

/// A terminal of 30 columns that becomes wider, without colours.
fn narrow(program: &Program, home: &Path, endpoint: &Endpoint) -> Result<()> {
    let begin = ["chat", "harness.yaml", "--base-url", &endpoint.url, "--color", "never"];
    let mut screen = Screen::open(program, home, home, &begin)?;
    screen.resize(30, 12)?;
    screen.sees("/help shows")?;
    screen.says("Still there?")?;
    screen.sees("Still here.")?;
    screen.resize(100, 30)?;
    screen.types("a draft that stays")?;
    screen.sees("› a draft that stays")?;
    screen.presses("C-c")?;
    screen.presses("C-d")?;
    screen.sees_end(0)
}
