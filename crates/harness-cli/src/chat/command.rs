//! Commands of the chat: lines that start with a slash.

use std::fmt::Write as _;

use harness::core::port::ThinkingLevel;
use harness::runtime::template::TemplateSet;

use super::composer::Item as MenuItem;
use crate::render::one_line;
use crate::threads::found;

/// A slash command and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    /// Shows or sets the model.
    Model(Option<String>),
    /// Shows or sets the thinking level.
    Thinking(Thinking),
    /// Lists the tools.
    Tools,
    /// Shows the last calls in full, by default the last one.
    Calls(usize),
    Skills,
    /// Compacts the conversation, with instructions for the summary.
    Compact(Option<String>),
    /// Continues in a copy of the conversation.
    Fork,
    /// Starts a new conversation.
    New,
    /// Removes this number of recent messages and everything that followed them.
    Undo(usize),
    /// Copies the last answer to the clipboard.
    Copy,
    /// Writes the conversation to a file.
    Save(String),
    Cost,
    Status,
    /// Lists the queued messages.
    Queue,
    /// Removes a queued message by its number, from 1.
    Drop(usize),
    /// Lists the standing approvals.
    Grants,
    /// Revokes one of them by its number, from 1.
    Revoke(usize),
    Quit,
}

/// A use of the thinking level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thinking {
    Show,
    /// `None` leaves it to the model.
    Set(Option<ThinkingLevel>),
    Next,
}

/// Thinking levels, in the order of the key that changes them. Adapters use the highest one for `xhigh`, too.
pub(crate) const LEVELS: [ThinkingLevel; 5] = [
    ThinkingLevel::Off,
    ThinkingLevel::Minimal,
    ThinkingLevel::Low,
    ThinkingLevel::Medium,
    ThinkingLevel::High,
];

/// Name of the level that a model has without a setting.
pub(crate) const DEFAULT_LEVEL: &str = "default";

/// Parsed input line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// A message to the agents.
    Text(String),
    Command(Command),
    /// A command line that the user wants to run.
    Run(String),
    /// A line that starts with a slash and an unknown name.
    Unknown(String),
    /// An invalid command, with its usage.
    Misused(&'static str),
}

/// Help of one command.
struct Entry {
    name: &'static str,
    arguments: &'static str,
    does: &'static str,
}

const fn entry(name: &'static str, arguments: &'static str, does: &'static str) -> Entry {
    Entry { name, arguments, does }
}

const COMMANDS: [Entry; 20] = [
    entry("help", "", "show commands and keys"),
    entry("model", "[NAME]", "show or change the model of the next messages"),
    entry("thinking", "[LEVEL]", "show or change the thinking level (Alt-T)"),
    entry("tools", "[last [N]]", "list the tools, or the last N calls in full (Ctrl-O)"),
    entry("skills", "", "list the skills; /skill:NAME uses one"),
    entry("compact", "[WHAT TO KEEP]", "compact the conversation"),
    entry("new", "", "start a new conversation; this one is kept"),
    entry("fork", "", "continue in a copy of this conversation"),
    entry("undo", "[N]", "undo the last message, or the last N"),
    entry("copy", "", "copy the last answer to the clipboard, as Markdown"),
    entry("save", "FILE", "export the conversation as Markdown to a new file"),
    entry("cost", "", "show the usage of this chat"),
    entry("status", "", "show the status"),
    entry("queue", "[drop N]", "list queued messages, or remove one (Alt-Up)"),
    entry("grants", "", "list the calls that run without a prompt"),
    entry("revoke", "N", "remove grant N of /grants"),
    entry("quit", "", "exit; the conversation is kept"),
    entry("exit", "", ""),
    entry("q", "", ""),
    entry("?", "", ""),
];

/// Help of the keys.
const KEYS: [(&str, &str); 20] = [
    ("Enter", "send; while something runs, between its steps"),
    ("Shift-Enter, Ctrl-J", "start a new line; also Alt-Enter, or \\ before Enter"),
    ("Esc", "interrupt"),
    ("Esc Esc", "edit your last message"),
    ("Ctrl-C", "interrupt; exit when pressed again"),
    ("Shift-Tab", "change the mode, if there are modes"),
    ("Alt-T", "change the thinking level"),
    ("/", "list the commands; // sends a message that starts with /"),
    ("@PATH", "attach a file or an image; Tab completes"),
    ("!COMMAND", "run a command; the model sees its output, too"),
    ("Up, Down", "go through what was sent"),
    ("Ctrl-R", "search what was sent"),
    ("Alt-Up", "take the last queued message back"),
    ("Ctrl-G", "open the text in $VISUAL or $EDITOR"),
    ("Ctrl-O", "show the last tool call in full"),
    ("Ctrl-T", "open the whole conversation in $PAGER"),
    ("Ctrl-V", "attach the image on the clipboard"),
    ("Ctrl-L", "clear the screen"),
    ("Ctrl-Z", "suspend; `fg` continues"),
    ("Ctrl-D", "exit, if the text is empty"),
];

/// Lines of the help of the keys.
pub(crate) fn keys() -> String {
    let lines: Vec<String> = KEYS.iter().map(|(key, does)| format!("{key:<20} {does}")).collect();
    lines.join("\n")
}

/// Parses a line.
pub(crate) fn read(line: &str) -> Said {
    let text = line.trim();
    if let Some(rest) = text.strip_prefix("//") {
        return Said::Text(format!("/{rest}"));
    }
    if let Some(rest) = text.strip_prefix('!') {
        return match typed_command(text) {
            Some(line) if !line.is_empty() => Said::Run(line.to_owned()),
            Some(_) | None => Said::Text(rest.trim().to_owned()),
        };
    }
    let Some(command) = text.strip_prefix('/') else { return Said::Text(text.to_owned()) };
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    if name.is_empty() || name.contains('/') || name.contains('.') {
        // A path.
        return Said::Text(text.to_owned());
    }
    known(name, rest.trim()).unwrap_or_else(|| Said::Unknown(text.to_owned()))
}

/// The command line of a text that starts with `!`, as far as it is typed.
pub(crate) fn typed_command(text: &str) -> Option<&str> {
    let rest = text.trim_start().strip_prefix('!')?.trim_start();
    (!rest.starts_with('!')).then_some(rest)
}

fn known(name: &str, rest: &str) -> Option<Said> {
    let given = || (!rest.is_empty()).then(|| rest.to_owned());
    let command = match name {
        "help" | "?" => Command::Help,
        "model" => Command::Model(given()),
        "thinking" => return Some(thinking(rest)),
        "tools" => return Some(tools(rest)),
        "skills" => Command::Skills,
        "compact" => Command::Compact(given()),
        "fork" => Command::Fork,
        "new" => Command::New,
        "undo" => return Some(number(rest, Command::Undo, "/undo [N]")),
        "copy" => Command::Copy,
        "save" => match given() {
            Some(file) => Command::Save(file),
            None => return Some(Said::Misused("/save FILE")),
        },
        "cost" => Command::Cost,
        "status" => Command::Status,
        "queue" => return Some(queue(rest)),
        "grants" => Command::Grants,
        "revoke" => match rest.parse() {
            Ok(number @ 1..) => Command::Revoke(number),
            Ok(0) | Err(_) => return Some(Said::Misused("/revoke N")),
        },
        "quit" | "exit" | "q" => Command::Quit,
        _ => return None,
    };
    Some(Said::Command(command))
}

fn number(rest: &str, command: fn(usize) -> Command, written: &'static str) -> Said {
    match rest.parse() {
        _ if rest.is_empty() => Said::Command(command(1)),
        Ok(0) | Err(_) => Said::Misused(written),
        Ok(count) => Said::Command(command(count)),
    }
}

fn thinking(rest: &str) -> Said {
    let named = || LEVELS.into_iter().find(|level| level.as_str() == rest);
    let change = match rest {
        "" => Thinking::Show,
        DEFAULT_LEVEL => Thinking::Set(None),
        _ => match named() {
            Some(level) => Thinking::Set(Some(level)),
            None => return Said::Misused("/thinking [default|off|minimal|low|medium|high]"),
        },
    };
    Said::Command(Command::Thinking(change))
}

fn tools(rest: &str) -> Said {
    let last = rest.strip_prefix("last").filter(|more| more.is_empty() || more.starts_with(' '));
    match last {
        Some(count) => number(count.trim(), Command::Calls, "/tools [last [N]]"),
        None if rest.is_empty() => Said::Command(Command::Tools),
        None => Said::Misused("/tools [last [N]]"),
    }
}

fn queue(rest: &str) -> Said {
    match rest.strip_prefix("drop ").map(|number| number.trim().parse()) {
        Some(Ok(number @ 1..)) => Said::Command(Command::Drop(number)),
        None if rest.is_empty() => Said::Command(Command::Queue),
        Some(_) | None => Said::Misused("/queue [drop N]"),
    }
}

/// Commands for completion, with their slashes and what they do.
pub(crate) fn items() -> impl Iterator<Item = MenuItem> {
    COMMANDS.iter().filter(|entry| !entry.does.is_empty()).map(|entry| MenuItem {
        text: format!("/{}", entry.name),
        note: entry.does.to_owned(),
        is_sent: !entry.arguments.starts_with(|c: char| c.is_ascii_uppercase()),
    })
}

/// Reason why a prompt template of that name cannot be called by typing it, if any.
pub(crate) fn unusable(template: &str) -> Option<&'static str> {
    if COMMANDS.iter().any(|entry| entry.name == template) {
        return Some("a chat command has this name; rename the file");
    }
    found::untypable(template)
}

/// The most similar command with its slash, if any is similar.
pub(crate) fn nearest<'a>(name: &'a str, others: impl Iterator<Item = &'a str>) -> Option<String> {
    let commands = COMMANDS.iter().filter(|entry| !entry.does.is_empty()).map(|entry| entry.name);
    let near = commands.chain(others).map(|known| (distance(name, known), known));
    let (far, nearest) = near.min_by_key(|(far, _)| *far)?;
    let begins = nearest.starts_with(name);
    (begins || far <= nearest.chars().count().div_ceil(3)).then(|| format!("/{nearest}"))
}

/// Edit distance of two words.
fn distance(left: &str, right: &str) -> usize {
    if right.starts_with(left) {
        return 0;
    }
    let right: Vec<char> = right.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, from) in left.chars().take(64).enumerate() {
        let mut next = vec![at + 1];
        for (column, to) in right.iter().enumerate() {
            let of = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX - 1);
            let changed = of(&row, column) + usize::from(from != *to);
            next.push(changed.min(of(&row, column + 1) + 1).min(of(&next, column) + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

/// Lines of the help, including these templates.
pub(crate) fn help(templates: &TemplateSet) -> String {
    let mut text = String::new();
    for Entry { name, arguments, does } in COMMANDS.iter().filter(|entry| !entry.does.is_empty()) {
        let written = format!("/{name} {arguments}");
        let _ = writeln!(text, "{written:<26} {does}");
    }
    if !templates.templates().is_empty() {
        text.push_str("\nTemplates:\n");
    }
    for template in templates.templates() {
        let written = format!("/{} {}", template.name, template.argument_hint.as_deref().unwrap_or_default());
        let _ = writeln!(text, "{:<26} {}", one_line(&written), one_line(&template.description));
    }
    text + "\n" + &keys()
}

#[cfg(test)]
mod tests {
    use harness::runtime::template::PromptTemplate;

    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &Said) {
        assert_eq!(read(line), *expected, "{line}");
    }

    #[test]
    fn the_help_fits_on_a_terminal_of_80_columns() {
        let help = help(&TemplateSet::default());
        let wide: Vec<_> = help.lines().filter(|line| line.chars().count() > 79).collect();
        assert_eq!(wide, Vec::<&str>::new());
    }

    #[test]
    fn a_line_with_a_slash_is_a_command() {
        let command = |command| Said::Command(command);
        check("/help", &command(Command::Help));
        check(" /model  openai/gpt-5 ", &command(Command::Model(Some("openai/gpt-5".to_owned()))));
        check("/model", &command(Command::Model(None)));
        check("/thinking", &command(Command::Thinking(Thinking::Show)));
        check("/thinking high", &command(Command::Thinking(Thinking::Set(Some(ThinkingLevel::High)))));
        check("/thinking default", &command(Command::Thinking(Thinking::Set(None))));
        check("/tools", &command(Command::Tools));
        check("/tools last", &command(Command::Calls(1)));
        check("/tools last 3", &command(Command::Calls(3)));
        check(
            "/compact the numbers, please",
            &command(Command::Compact(Some("the numbers, please".to_owned()))),
        );
        check("/undo", &command(Command::Undo(1)));
        check("/undo 2", &command(Command::Undo(2)));
        check("/copy", &command(Command::Copy));
        check("/save out.md", &command(Command::Save("out.md".to_owned())));
        check("/grants", &command(Command::Grants));
        check("/revoke 2", &command(Command::Revoke(2)));
        check("/queue drop 2", &command(Command::Drop(2)));
        check("/exit", &command(Command::Quit));
    }

    #[test]
    fn a_command_that_cannot_be_meant_so_says_how_it_is_written() {
        check("/save", &Said::Misused("/save FILE"));
        check("/thinking hard", &Said::Misused("/thinking [default|off|minimal|low|medium|high]"));
        check("/undo all", &Said::Misused("/undo [N]"));
        check("/undo 0", &Said::Misused("/undo [N]"));
        check("/tools lasts", &Said::Misused("/tools [last [N]]"));
        check("/revoke", &Said::Misused("/revoke N"));
        check("/revoke 0", &Said::Misused("/revoke N"));
        check("/queue drop 0", &Said::Misused("/queue [drop N]"));
    }

    #[test]
    fn everything_else_is_for_the_agents() {
        let text = |text: &str| Said::Text(text.to_owned());
        check("hello /help", &text("hello /help"));
        check("//help", &text("/help"));
        check("/", &text("/"));
        check("/etc/hosts is what?", &text("/etc/hosts is what?"));
        check("/photo.png", &text("/photo.png"));
        check("!", &text(""));
        check("!!important", &text("!important"));
        check("! ls -l", &Said::Run("ls -l".to_owned()));
        check("/hlep me", &Said::Unknown("/hlep me".to_owned()));
    }

    #[test]
    fn the_nearest_command_is_suggested() {
        let near = |name| nearest(name, ["deploy"].into_iter());
        assert_eq!(near("hlep").as_deref(), Some("/help"));
        assert_eq!(near("comp").as_deref(), Some("/compact"));
        assert_eq!(near("deplyo").as_deref(), Some("/deploy"));
        assert_eq!(near("xyzzy"), None);
    }

    #[test]
    fn a_template_that_nobody_can_use_is_found_out() {
        assert_eq!(unusable("review-all"), None);
        assert!(unusable("help").unwrap().contains("a chat command"));
        for name in ["two words", "v1.2", "skill:x"] {
            assert!(unusable(name).unwrap().contains("cannot be typed"), "{name}");
        }
    }

    #[test]
    fn the_help_tells_every_command() {
        let mut fix = PromptTemplate::new("fix", "Fix issue $1.");
        fix.argument_hint = Some("<number>".to_owned());
        fix.description = "Fixes an issue".to_owned();
        let help = help(&TemplateSet::new([fix]));
        assert!(items().all(|item| help.contains(&item.text)));
        assert!(help.contains("/fix <number>              Fixes an issue"), "{help}");
    }
}
