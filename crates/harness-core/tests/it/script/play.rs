//! Playing a script.

use std::fmt::Write as _;
use std::sync::Arc;

use super::line::{Asked, Line, Says, Script, check_says, gate_says};
use harness_core::End;
use harness_core::Json;
use harness_core::Time;
use harness_core::decide::{CheckVerdict, GateVerdict};
use harness_core::event::{Event, EventKind};
use harness_core::machine::{Input, Machine, Op, Phase, Reply, Start};
use harness_core::message::Message;
use harness_core::port::PreparedAgent;
use harness_core::testing::{Answer, Ran, ScriptedDriver, ScriptedWorld, event_line};
use harness_core::transcript::Transcript;
use harness_core::{EntryId, OpId};

/// When a script begins.
const BEGIN: Time = Time(1_767_225_600_000);

/// Plays a script with the machines that `new` makes over a transcript, one for each process.
pub(super) fn play<P: Phase>(script: Script, new: impl Fn(Transcript) -> Machine<P>) -> String {
    let Script { ports, tools, prompt, lines, .. } = script;
    let stage = Stage {
        prepared: Arc::new(PreparedAgent::new("main", "", tools)),
        lines,
        free: 0,
        steering: Vec::new(),
    };
    let new = move |log| new(log).with_ports(ports.clone());
    let mut play = Play { new, at: BEGIN, told: String::new() };
    let mut driver = play.process(Transcript::default(), stage);
    driver.input(Input::Start(Box::new(Start::prompt(Message::user(prompt)))));
    let mut ran = reach(&mut driver);
    while let Some(at) = driver.outside().next_from_outside() {
        let fits = driver.outside().lines.get(at).is_some_and(|line| line.says.fits(&ran));
        if !fits {
            break;
        }
        driver.outside_mut().free = at + 1;
        play.enter(&mut driver, at);
        ran = reach(&mut driver);
    }
    play.tell(driver.events());
    play.verdict(&ran, &driver);
    play.told
}

type Driver<P> = ScriptedDriver<P, Stage>;

struct Play<N> {
    new: N,
    at: Time,
    told: String,
}

impl<P: Phase, N: Fn(Transcript) -> Machine<P>> Play<N> {
    fn process(&self, log: Transcript, stage: Stage) -> Driver<P> {
        ScriptedDriver::new((self.new)(log), stage, self.at)
    }

    /// Lets the line at `at` happen.
    fn enter(&mut self, driver: &mut Driver<P>, at: usize) {
        let Some(line) = driver.outside_mut().lines.get_mut(at) else { return };
        line.used = true;
        let number = line.number;
        let input = match &line.says {
            Says::Answer(..) => return,
            Says::Steer(message) => {
                let message = Arc::new(message.clone());
                driver.outside_mut().steering.push((EntryId::from(format!("line {number}")), message));
                return;
            }
            Says::Advance(by) => {
                let by = *by;
                driver.advance(by);
                return;
            }
            Says::Crash => {
                self.tell(driver.events());
                self.told.push_str("-- crash\n");
                return self.next_process(driver, Start::resume());
            }
            Says::Turn(message) => {
                let start = message.clone().map_or_else(Start::resume, Start::prompt);
                return self.next_turn(driver, start);
            }
            Says::Decide(decision) => {
                let mut start = Start::resume();
                start.decisions.push(decision.clone());
                return self.next_turn(driver, start);
            }
            Says::Cancel => Input::Cancel { by: Arc::from("script") },
        };
        driver.input(input);
    }

    /// Another turn goes on where this one ended.
    fn next_turn(&mut self, driver: &mut Driver<P>, mut start: Start) {
        self.tell(driver.events());
        let end = driver.machine().end().cloned();
        if let Some(end) = &end {
            let _ = writeln!(self.told, "{}", verdict_line(end));
        }
        start.continuation = end.and_then(|end| end.continuation.clone());
        self.next_process(driver, start);
    }

    /// Another process goes on from what is durable.
    fn next_process(&mut self, driver: &mut Driver<P>, start: Start) {
        self.at = driver.now();
        let stage = driver.outside_mut().take_over();
        let durable = driver.journal().reopen();
        *driver = self.process(durable.messages.into_iter().collect(), stage);
        driver.input(Input::Start(Box::new(start.with_open_calls(durable.open_calls))));
    }

    fn tell(&mut self, events: &[Event]) {
        let told = |event: &&Event| !matches!(event.kind, EventKind::AgentPrepared { .. });
        for event in events.iter().filter(told) {
            if event.at > self.at {
                self.at = event.at;
                let _ = writeln!(self.told, "-- {}", self.at.since(BEGIN));
            }
            let _ = writeln!(self.told, "{}", event_line(&event.kind));
        }
    }

    fn verdict(&mut self, ran: &Ran, driver: &Driver<P>) {
        for line in driver.outside().lines.iter().filter(|line| !line.used) {
            let _ = writeln!(self.told, "unused line {}: {}", line.number, line.text);
        }
        let _ = match ran {
            Ran::Ended(end) => writeln!(self.told, "{}", verdict_line(end)),
            Ran::Crashed => writeln!(self.told, "crashed"),
            Ran::Endless => writeln!(self.told, "endless"),
            Ran::Waiting | _ => {
                let open: Vec<_> = driver.open().iter().map(|(_, op)| waits_for(op)).collect();
                writeln!(self.told, "waiting: {}", open.join(", "))
            }
        };
    }
}

fn verdict_line(end: &End) -> String {
    let answer = end.answer.as_ref().map(|answer| format!(" {answer:?}")).unwrap_or_default();
    format!("{}: {}{answer}", end.outcome(), end.reason())
}

fn waits_for(op: &Op) -> String {
    asked(op).map_or_else(|| format!("{op:?}"), |asked| asked.to_string())
}

/// What the lines of the script answer.
#[derive(Debug)]
struct Stage {
    prepared: Arc<PreparedAgent>,
    lines: Vec<Line>,
    /// Lines before this one may be used.
    free: usize,
    /// What waits to be injected.
    steering: Vec<(EntryId, Arc<Message>)>,
}

impl Stage {
    /// The stage of the next process.
    fn take_over(&mut self) -> Self {
        let (lines, steering) = (std::mem::take(&mut self.lines), std::mem::take(&mut self.steering));
        Self { prepared: Arc::clone(&self.prepared), lines, free: self.free, steering }
    }

    /// The next line that is no answer.
    fn next_from_outside(&self) -> Option<usize> {
        self.lines.iter().skip(self.free).position(|line| !line.says.is_answer()).map(|at| at + self.free)
    }

    /// Whether something that the free lines say has still to happen: an answer, or the end.
    fn is_owed(&self) -> bool {
        let until = self.next_from_outside();
        until.is_none_or(|until| self.lines.iter().take(until).any(|line| !line.used))
    }

    /// The answer of the first unused line for `asked` that stands before the next line from outside.
    fn take(&mut self, asked: &Asked) -> Option<Reply> {
        let until = self.next_from_outside().unwrap_or(self.lines.len());
        let line = self.lines.iter_mut().take(until).find(|line| line.answers(asked))?;
        line.used = true;
        if let Says::Answer(_, reply) = &line.says { Some(reply.clone()) } else { None }
    }

    fn speaks_of(&self, asked: &Asked) -> bool {
        self.lines.iter().any(|line| line.answers(asked))
    }

    fn answer(&mut self, op: &Op) -> Option<Reply> {
        let Some(asked) = asked(op) else { return self.usual(op) };
        if let Some(reply) = self.take(&asked) {
            return Some(reply);
        }
        match asked {
            Asked::Gate(..) if !self.speaks_of(&asked) => Some(gate_says(GateVerdict::Allow)),
            Asked::Arguments(_) if !self.speaks_of(&asked) => Some(Reply::Arguments(Ok(()))),
            Asked::Check(_) if !self.speaks_of(&asked) => Some(check_says(CheckVerdict::Accept)),
            Asked::Check(_)
            | Asked::Model
            | Asked::Tool(_)
            | Asked::Gate(..)
            | Asked::Arguments(_)
            | Asked::Approve(_) => None,
        }
    }

    fn usual(&mut self, op: &Op) -> Option<Reply> {
        if let Op::Drain { .. } = op {
            return Some(Reply::Drained(std::mem::take(&mut self.steering)));
        }
        if let Op::Facts { .. } = op {
            return Some(Reply::Facts(Ok(Json::null())));
        }
        matches!(op, Op::Prepare { .. }).then(|| Reply::Prepared(Ok(Arc::clone(&self.prepared))))
    }
}

impl ScriptedWorld for Stage {
    fn perform(&mut self, _: OpId, op: &Op, _: &Transcript) -> Answer {
        self.answer(op).map_or(Answer::Open, Answer::now)
    }
}

/// Runs until all that the free lines say has happened, moving the time only as far as that needs.
fn reach<P: Phase>(driver: &mut Driver<P>) -> Ran {
    loop {
        for (id, op) in driver.open().to_vec() {
            if let Some(reply) = driver.outside_mut().answer(&op) {
                driver.reply(id, reply);
            }
        }
        let ran = driver.settle();
        let next = driver.next_time().filter(|_| driver.outside().is_owed());
        match (&ran, next) {
            (Ran::Waiting, Some(at)) => driver.advance(at.since(driver.now())),
            _ => return ran,
        };
    }
}

/// The line that can answer an operation; nothing when no line does.
fn asked(op: &Op) -> Option<Asked> {
    match op {
        Op::Model { .. } => Some(Asked::Model),
        Op::Tool { call, .. } => Some(Asked::Tool(call.id.clone())),
        Op::Gate { gate, proposed } => Some(Asked::Gate(*gate, proposed.call.id.clone())),
        Op::Arguments { call } => Some(Asked::Arguments(call.id.clone())),
        Op::Approve { proposed } => Some(Asked::Approve(proposed.call.id.clone())),
        Op::Check { check, .. } => Some(Asked::Check(*check)),
        Op::Prepare { .. }
        | Op::Begin { .. }
        | Op::Append { .. }
        | Op::Recall { .. }
        | Op::Compact { .. }
        | Op::AfterModel { .. }
        | Op::LayerStore { .. }
        | Op::Complete { .. }
        | Op::NoteApproval { .. }
        | Op::Drain { .. }
        | Op::Facts { .. }
        | Op::Store { .. }
        | Op::Save { .. } => None,
    }
}
