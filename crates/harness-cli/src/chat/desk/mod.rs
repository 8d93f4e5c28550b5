//! The loop of a chat at a terminal: connects the terminal, the thread and the chat's state.

mod clipboard;
mod detour;
mod reports;
mod thinking;

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::core::message::{Block, UserMessage};
use harness::core::port::Decision;
use harness::core::{Cancel, Millis, Time};
use harness::runtime::skill::Skill;
use harness::runtime::{DeliveryMode, Status, Stream, StreamItem, ThreadEvent};
use tokio::sync::mpsc;

use crate::chat::app::{About, Action, App, Verdict, Waiting};
use crate::chat::assistant::next_mode;
use crate::chat::attach;
use crate::chat::command::{self, Command};
use crate::chat::conversation::{Begun, Conversation};
use crate::chat::grants;
use crate::chat::history::History;
use crate::chat::place;
use crate::chat::terminal::{Input, Keys};
use crate::chat::words::Words;
use crate::env;
use crate::error::CliError;
use crate::private_file::PrivateFile;
use crate::render::line::Styling;
use crate::render::screen::Screen;
use crate::render::{one_line, picture, size};
use crate::signal::Signals;
use crate::terminal::{Out, drawing};

/// Interval of animation frames.
const TICK: Duration = Duration::from_millis(100);

/// Maximum time to wait for aborted work on exit.
const PATIENCE: Duration = Duration::from_secs(6);

/// Maximum number of events that are handled before the screen is drawn.
const BURST: usize = 512;

/// Time after which a mode decides about calls that were pending before.
const SETTLED: Millis = Millis(1_000);

/// Number of earlier messages that are shown again.
const RECALLED: usize = 6;

/// Result of work beside the conversation.
#[derive(Debug)]
enum Done {
    Said(String),
    Failed(String),
    /// A compaction failed.
    NotShorter(String),
    /// An image of the clipboard was read.
    Image(PrivateFile),
    /// A command of the user ended.
    Ran {
        line: String,
        result: String,
    },
}

/// A chat at a terminal.
pub(super) struct Desk {
    chat: Conversation,
    app: App,
    screen: Screen<Out>,
    size: (usize, usize),
    /// Whether the conversation on the screen has another width than the terminal.
    is_resized: bool,
    keys: Keys,
    events: Stream,
    history: History,
    done: (mpsc::Sender<Done>, mpsc::Receiver<Done>),
    home: Option<PathBuf>,
    /// Stops the user's command in flight.
    command: Option<Cancel>,
    /// Output of the user's commands for the next message.
    outputs: Vec<Block>,
    /// Images of the clipboard that a message may name.
    images: Vec<PrivateFile>,
    /// Since when the current mode is the current one.
    mode_since: Time,
}

impl Desk {
    pub(super) fn new(chat: Conversation, begun: &Begun, styling: Styling, keys: Keys) -> Self {
        let (history, entries) = History::open(env::state().map(|state| state.join("chat-history.jsonl")));
        let size = size();
        let mut app =
            App::new(styling, size, entries, Box::new(Words::of(&chat.thread.config(), chat.known_models())));
        app.set_now(chat.now());
        app.set_pictures(picture::protocol().filter(|_| styling == Styling::Colour));
        let place = chat.assistant.as_ref().map(|assistant| place::of(assistant.folder()));
        *app.about_mut() =
            About { model: begun.model.clone(), place, window: begun.window, ..About::default() };
        greet(&mut app, begun);
        if let Some(why) = chat.assistant.as_ref().and_then(|assistant| assistant.unsandboxed.as_deref()) {
            app.complain(&format!("commands run without a sandbox ({why}); each one prompts"));
        }
        let (events, screen) = (chat.events(), Screen::new(drawing(), styling));
        let (done, home) = (mpsc::channel(16), env::home());
        let (command, outputs, mode_since) = (None, Vec::new(), chat.now());
        Self {
            chat,
            app,
            screen,
            size,
            is_resized: false,
            keys,
            events,
            history,
            done,
            home,
            command,
            outputs,
            images: Vec::new(),
            mode_since,
        }
    }

    /// Runs the chat until the user exits and all work has ended. Returns whether the user exited, as opposed to a
    /// signal.
    pub(super) async fn talk(&mut self, signals: &mut Signals) -> Result<bool, CliError> {
        let talked = self.converse(signals).await;
        // Also when the terminal is gone: what runs has to end in good order.
        self.leave().await;
        let left = talked?;
        let cleared = self.screen.clear(self.size.0);
        cleared.map_err(|source| CliError::Io { action: "write to the terminal", source })?;
        Ok(left)
    }

    async fn converse(&mut self, signals: &mut Signals) -> Result<bool, CliError> {
        let written = |source| CliError::Io { action: "write to the terminal", source };
        loop {
            self.take_stock();
            let finished = self.app.take_finished();
            self.screen.draw(&finished, &self.app.view(), self.size.0).map_err(written)?;
            if std::mem::take(&mut self.is_resized) {
                self.screen.reflow(&self.app.reflow(), &self.app.view(), self.size).map_err(written)?;
            }
            if self.app.take_call() {
                self.screen.call_user("harness: waiting for you").map_err(written)?;
            }
            let wish = tokio::select! {
                biased;
                () = signals.next() => return Ok(false),
                input = self.keys.next() => self.input(input),
                told = self.events.next() => {
                    self.see(told);
                    None
                }
                Some(done) = self.done.1.recv() => {
                    match done {
                        Done::Said(text) => self.app.tell(&text),
                        Done::Failed(text) => self.app.complain(&text),
                        Done::NotShorter(text) => self.app.not_shorter(&text),
                        Done::Image(file) => self.attach_image(file),
                        Done::Ran { line, result } => self.command_ended(&line, &result),
                    }
                    None
                }
                () = self.chat.approvals.changed() => None,
                () = tokio::time::sleep(TICK), if self.app.is_at_work() => None,
            };
            match wish {
                Some(Action::Quit) => return Ok(true),
                Some(Action::Wipe) => {
                    self.app.settle();
                    self.screen.wipe().map_err(written)?;
                }
                Some(Action::Draft) => self.edit_draft(signals).await?,
                Some(Action::Transcript) => self.page_transcript(signals).await?,
                Some(Action::Suspend) => self.suspend()?,
                Some(wish) => self.grant(wish).await,
                None => {}
            }
        }
    }

    /// Session file of the conversation, if it has messages.
    pub(super) fn file(&self) -> Option<PathBuf> {
        self.chat.file().filter(|file| file.exists())
    }

    /// Updates the state to the current time.
    fn take_stock(&mut self) {
        // A key may be told before the news that the terminal has another size.
        self.resize(size());
        self.app.set_now(self.chat.now());
        let waiting = self.chat.thread.queue().into_iter();
        let waiting =
            waiting.map(|entry| Waiting { entry: entry.id, text: attach::shown(entry.message.content()) });
        self.app.set_waiting(waiting.collect());
        let mode = self.chat.mode().map(|mode| mode.current().name.to_string());
        if std::mem::replace(&mut self.app.about_mut().mode, mode.clone()) != mode {
            self.mode_since = self.chat.now();
        }
        self.settle();
        let held = self.chat.approvals.held(self.chat.thread.id());
        let preview = held.first().and_then(|first| self.chat.previews.of(&first.id()));
        self.app.set_asks(&held, preview);
    }

    /// Approves pending calls that the mode covers, such as an edit after a change to `accept edits`. The mode must have
    /// stayed for a moment, because Shift-Tab passes through modes.
    fn settle(&mut self) {
        if self.app.is_explaining() || self.chat.now().since(self.mode_since) < SETTLED {
            return;
        }
        let approvals = &self.chat.approvals;
        let held = approvals.held(self.chat.thread.id());
        for proposed in held.iter().filter(|proposed| self.chat.standing.approves(proposed)) {
            let (thread, approval) = (self.chat.thread.id(), proposed.id());
            match approvals.decide(thread, &approval, &proposed.digest(), Decision::Granted) {
                Ok(()) => self.app.answered(&proposed.call.id),
                Err(fault) => self.app.complain(&fault.to_string()),
            }
        }
    }

    /// Updates the branch, which commands may have changed.
    fn note_place(&mut self) {
        let place = self.chat.assistant.as_ref().map(|assistant| place::of(assistant.folder()));
        self.app.about_mut().place = place;
    }

    fn resize(&mut self, size: (usize, usize)) {
        let before = std::mem::replace(&mut self.size, size);
        if before != size {
            self.is_resized |= before.0 != size.0;
            self.app.resize(size.0, size.1);
        }
    }

    fn input(&mut self, input: Input) -> Option<Action> {
        match input {
            Input::Key(key) => self.app.key(key),
            Input::Size(columns, rows) => {
                self.resize((columns, rows));
                None
            }
            Input::Closed => Some(Action::Quit),
        }
    }

    /// Handles an event and all that followed it.
    fn see(&mut self, told: Option<StreamItem>) {
        let mut next = told;
        let mut taken = 0;
        while let Some(told) = next {
            match told {
                StreamItem::Event { event, .. } => {
                    if matches!(event, ThreadEvent::Status(Status::Idle)) {
                        self.note_place();
                    }
                    self.app.see(&event);
                }
                StreamItem::Lagged { missed } => {
                    self.app.complain(&format!("{missed} events were not shown"));
                }
                StreamItem::Held { .. } | _ => {}
            }
            taken += 1;
            next = if taken < BURST { self.events.try_next() } else { None };
        }
    }

    /// Performs an action.
    async fn grant(&mut self, wish: Action) {
        match wish {
            Action::Say(text) => self.say(&text),
            Action::Guess(line) => self.guess(&line),
            Action::Interrupt if self.stop_command() => {}
            Action::Interrupt => {
                self.chat.thread.abort("the user interrupted");
            }
            Action::PasteImage => self.paste_image(),
            Action::Run(line) => {
                self.history.add(&format!("!{line}"));
                self.run_command(line);
            }
            Action::Recall => self.recall(),
            Action::Answer { proposed, verdict } => {
                let decision = match verdict {
                    Verdict::Once => Decision::Granted,
                    Verdict::Grant(scope) => {
                        let told = grants::add(&self.chat.standing, &proposed.call, scope);
                        self.app.tell(&told);
                        Decision::Granted
                    }
                    Verdict::Deny { reason } => Decision::Denied { reason },
                };
                let (approval, digest) = (proposed.id(), proposed.digest());
                let approvals = &self.chat.approvals;
                let decided = approvals.decide(self.chat.thread.id(), &approval, &digest, decision);
                self.app.answered(&proposed.call.id);
                if let Err(fault) = decided {
                    self.app.complain(&fault.to_string());
                }
            }
            Action::Do(command) => {
                if let Err(fault) = self.obey(command).await {
                    let hint = fault.hint().map(|hint| format!("\n{hint}")).unwrap_or_default();
                    self.app.complain(&format!("{fault}{hint}"));
                }
            }
            Action::NextMode => {
                if let Some(mode) = self.chat.mode() {
                    next_mode(&mode);
                }
            }
            Action::Wipe | Action::Draft | Action::Transcript | Action::Suspend | Action::Quit => {}
        }
    }

    /// Sends a message: it starts a run, or is delivered between the iterations of the current one.
    fn say(&mut self, text: &str) {
        self.history.add(text);
        let (message, problems) = attach::message(text, self.home.as_deref());
        for problem in problems {
            self.app.complain(&problem);
        }
        let origin = if self.chat.thread.status() == Status::Idle { "prompt" } else { "steering" };
        self.deliver(message.from_origin(origin));
    }

    fn deliver(&mut self, mut message: UserMessage) {
        message.content.append(&mut self.outputs);
        if let Err(fault) = self.chat.thread.execute(message, DeliveryMode::BetweenRounds) {
            self.app.complain(&fault.to_string());
        }
    }

    /// Handles a line with a slash: a template, a skill, or a typing error.
    fn guess(&mut self, line: &str) {
        if let Some(message) = self.chat.expand(line) {
            self.history.add(line);
            return self.deliver(message);
        }
        let config = self.chat.thread.config();
        let name = line.trim_start_matches('/').split_whitespace().next().unwrap_or_default();
        let names = config.templates.templates().iter().map(|template| template.name.as_str());
        let near = command::nearest(name, names);
        let hint =
            near.map_or_else(|| "type /help for commands".to_owned(), |near| format!("did you mean {near}?"));
        self.app.complain(&format!("unknown command /{name}; {hint}"));
    }

    /// Moves the last queued message back into the editor.
    fn recall(&mut self) {
        let Some(last) = self.chat.thread.queue().pop() else { return };
        match self.chat.thread.cancel(&last.id) {
            Ok(entry) => self.app.write(&attach::typed(entry.message.content())),
            Err(fault) => self.app.complain(&fault.to_string()),
        }
    }

    async fn obey(&mut self, command: Command) -> Result<(), CliError> {
        match command {
            Command::Model(Some(name)) => {
                self.chat.set_model(&name)?;
                self.app.tell(&format!("{name} answers from the next message on"));
                let about = self.app.about_mut();
                (about.model, about.window) = (name, self.chat.window());
                self.note_thinking();
            }
            Command::Model(None) => self.tell_model(),
            Command::Thinking(change) => self.think(change),
            Command::Tools => self.list_tools(),
            Command::Skills => self.list_skills(),
            Command::Compact(keep) => self.compact(keep),
            Command::New => {
                self.chat.begin_new()?;
                self.follow("a new conversation");
            }
            Command::Fork => match self.chat.fork()? {
                Some(file) => {
                    let place = self.shown(&file);
                    self.follow(&format!("a copy of the conversation, in {place}"));
                }
                None => self.not_kept(),
            },
            Command::Undo(count) => self.undo(count).await?,
            Command::Copy => self.copy_answer().await?,
            Command::Save(file) => self.save(&PathBuf::from(file))?,
            Command::Cost => self.tell_cost(),
            Command::Status => self.tell_status(),
            Command::Queue => self.tell_queue(),
            Command::Drop(number) => self.drop_waiting(number),
            Command::Grants => self.app.tell(&grants::list(&self.chat.standing)),
            Command::Revoke(number) => match grants::revoke(&self.chat.standing, number) {
                Ok(text) => self.app.tell(&text),
                Err(text) => self.app.complain(&text),
            },
            Command::Help => self.app.tell(&command::help(&self.chat.thread.config().templates)),
            Command::Calls(_) | Command::Quit => {}
        }
        Ok(())
    }

    /// Subscribes to the current thread.
    fn follow(&mut self, what: &str) {
        self.events = self.chat.events();
        self.outputs.clear();
        self.app.tell(&format!("started {what}; the previous one is kept"));
    }

    /// A path in its shortest form for display.
    fn shown(&self, path: &Path) -> String {
        match self.home.as_ref().and_then(|home| path.strip_prefix(home).ok()) {
            Some(below) => format!("~/{}", below.display()),
            None => path.display().to_string(),
        }
    }

    fn not_kept(&mut self) {
        self.app.complain("no messages yet, or this conversation is not stored in a file");
    }

    fn tell_model(&mut self) {
        let config = self.chat.thread.config();
        let name = config.model_name.map(|name| name.to_string());
        let text = name.or_else(|| self.app.model()).unwrap_or_else(|| "as in the descriptor".to_owned());
        self.app.tell(&format!("model: {text} (change it with /model NAME)"));
    }

    /// Lists the tools, off the event loop: MCP servers may be slow.
    fn list_tools(&self) {
        let (thread, done) = (self.chat.thread.clone(), self.done.0.clone());
        tokio::spawn(async move {
            let told = match thread.tools().await {
                Ok(tools) if tools.is_empty() => Done::Said("no tools".to_owned()),
                Ok(tools) => {
                    let lines = tools.iter().map(|tool| {
                        let asks = if tool.requires_approval { " (asks)" } else { "" };
                        format!(
                            "{}{asks}  {}",
                            tool.name,
                            tool.description.lines().next().unwrap_or_default()
                        )
                    });
                    Done::Said(lines.collect::<Vec<_>>().join("\n"))
                }
                Err(fault) => Done::Failed(fault.to_string()),
            };
            // Without a desk nobody reads it.
            let _ = done.send(told).await;
        });
    }

    fn list_skills(&mut self) {
        let skills = self.chat.thread.config().skills;
        let mut lines = Vec::new();
        for Skill { name, description, location, hidden, .. } in skills.skills() {
            let only = if *hidden { " (for you alone)" } else { "" };
            let place = location.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
            lines.push(format!("/skill:{name}{only}  {}{place}", one_line(description)));
        }
        if lines.is_empty() {
            lines.push("no skills; --skills DIR loads them, each in a directory with a SKILL.md".to_owned());
        }
        self.app.tell(&lines.join("\n"));
        for problem in self.chat.problems().to_vec() {
            self.app.complain(&problem);
        }
    }

    fn compact(&self, keep: Option<String>) {
        let (thread, done) = (self.chat.thread.clone(), self.done.0.clone());
        tokio::spawn(async move {
            let told = match thread.compact(keep).await {
                // What became shorter is an event.
                Ok(Some(_)) => return,
                Ok(None) => Done::Said("nothing to compact".to_owned()),
                Err(fault) => Done::NotShorter(fault.to_string()),
            };
            let _ = done.send(told).await;
        });
    }

    async fn undo(&mut self, count: usize) -> Result<(), CliError> {
        if self.app.is_at_work() {
            self.app.complain("a run is in progress; Esc interrupts it");
            return Ok(());
        }
        match self.chat.undo(count).await? {
            Some(undone) => {
                let what = if undone.messages == 1 { "your last message" } else { "your last messages" };
                self.app.tell(&format!("undid {what}; it stays in the session file"));
                self.app.write(&undone.text);
            }
            None => self.app.tell("nothing to undo"),
        }
        Ok(())
    }

    fn save(&mut self, file: &PathBuf) -> Result<(), CliError> {
        let Some(text) = self.chat.store.markdown(self.chat.thread.id())? else {
            self.not_kept();
            return Ok(());
        };
        let new = std::fs::OpenOptions::new().write(true).create_new(true).open(file);
        match new.and_then(|mut out| out.write_all(text.as_bytes())) {
            Ok(()) => self.app.tell(&format!("exported to {}", file.display())),
            Err(fault) if fault.kind() == ErrorKind::AlreadyExists => {
                let text = format!("{} already exists; choose another file", file.display());
                self.app.complain(&text);
            }
            Err(source) => return Err(CliError::NotWritten { path: file.clone(), source }),
        }
        Ok(())
    }

    async fn leave(&mut self) {
        // What does not stop in time is put in order when the conversation is next opened.
        let _ = tokio::time::timeout(PATIENCE, self.chat.close()).await;
        while let Some(StreamItem::Event { event, .. }) = self.events.try_next() {
            self.app.see(&event);
        }
        let finished = self.app.take_finished();
        let _ = self.screen.draw(&finished, &self.app.view(), self.size.0);
    }
}

/// The header of the chat.
fn greet(app: &mut App, begun: &Begun) {
    let model = if begun.model.is_empty() { String::new() } else { format!(" · {}", begun.model) };
    let title = format!("harness chat · {}{model}", begun.title);
    if begun.before.is_empty() {
        let notice = begun.notice.as_ref().map(|notice| format!("{notice}\n")).unwrap_or_default();
        return app.tell(&format!("{title}\n{notice}type /help for commands"));
    }
    app.tell(&title);
    if let Some(notice) = &begun.notice {
        app.tell(notice);
    }
    let skipped = begun.before.len().saturating_sub(RECALLED);
    if skipped > 0 {
        app.tell(&format!("… {skipped} earlier messages"));
    }
    app.recall(begun.before.get(skipped..).unwrap_or_default());
}
