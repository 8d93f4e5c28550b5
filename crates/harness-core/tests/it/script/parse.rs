//! Reading a script.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::line::{Asked, Line, Says, Script, ScriptFault, check_says, gate_says};
use harness_core::Json;
use harness_core::Millis;
use harness_core::decide::{CheckVerdict, GateVerdict, Guard, Points};
use harness_core::machine::{CallDecision, PortSet, Reply};
use harness_core::message::{
    ApprovalRequest, AssistantMessage, Cost, Invalid, Message, ToolCall, Usage, UserMessage,
};
use harness_core::outcome::{AskReason, Question};
use harness_core::port::{Decision, ModelFault, ModelFaultCode};
use harness_core::tool::{ArgumentFault, RetryClass, ToolDef, ToolOutcome};
use harness_core::turn::{Execution, TurnSpec};
use harness_core::{CallId, GateName};
use harness_core::{Fault, FaultSource};

type Read<T> = Result<T, String>;

pub(super) fn parse(spec: TurnSpec, text: &str) -> Result<Script, ScriptFault> {
    let prompt = "go".to_owned();
    let mut script = Script { spec, ports: PortSet::default(), tools: Vec::new(), prompt, lines: Vec::new() };
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with("//") {
            continue;
        }
        let (number, text) = (at + 1, line.to_owned());
        match read(&mut script, line) {
            Ok(None) => {}
            Ok(Some(says)) => script.lines.push(Line { number, text, says, used: false }),
            Err(problem) => return Err(ScriptFault { line: number, text, problem }),
        }
    }
    Ok(script)
}

/// One line: what it says, or nothing when it configures the script.
fn read(script: &mut Script, line: &str) -> Read<Option<Says>> {
    let mut words = Words(line);
    let first = words.word();
    let says = match first {
        "tools" | "limits" | "gates" | "checks" | "parallel" | "approver" | "prompt" => {
            return configure(script, first, words).map(|()| None);
        }
        "model" => Says::Answer(Asked::Model, model(words.after_colon()?)?),
        "tool" => Says::Answer(Asked::Tool(words.call()?), execution(words.after_colon()?)?),
        "arguments" => Says::Answer(Asked::Arguments(words.call()?), arguments(words.after_colon()?)?),
        "approve" => {
            let (call, decision) = (words.call()?, decision(words.after_colon()?)?);
            Says::Answer(Asked::Approve(call), Reply::Approval(decision))
        }
        "gate" => {
            let gate = number_of(words.word(), script.ports.gates.iter().map(|gate| &gate.name), "gates")?;
            Says::Answer(Asked::Gate(gate, words.call()?), verdict(words.after_colon()?)?)
        }
        "check" => {
            let names = script.ports.checks.iter().map(|check| &check.name);
            let check = number_of(words.word(), names, "checks")?;
            Says::Answer(Asked::Check(check), check_verdict(words.after_colon()?)?)
        }
        "cancel" => Says::Cancel,
        "crash" => Says::Crash,
        "resume" => Says::Turn(None),
        "decide" => {
            let call = words.call()?;
            Says::Decide(CallDecision::new(call, decision(words.after_colon()?)?))
        }
        "next" => Says::Turn(Some(Message::user(words.text()?))),
        "steer" => {
            script.ports.steering = true;
            Says::Steer(UserMessage::text(words.text()?).from_origin("steering").into())
        }
        "advance" => Says::Advance(span(words.word())?),
        other => return Err(format!("`{other}` begins no line of a script")),
    };
    Ok(Some(says))
}

/// A line that says what the script runs with.
fn configure(script: &mut Script, what: &str, mut words: Words<'_>) -> Read<()> {
    match what {
        "tools" => script.tools = words.after_colon()?.0.split(',').map(tool).collect::<Read<_>>()?,
        "limits" => {
            for limit in words.after_colon()?.0.split(',') {
                set_limit(&mut script.spec, limit)?;
            }
        }
        "gates" => {
            let points = Points::CALL.and(Points::HANDOFF);
            let gates = names(words.after_colon()?).into_iter();
            script.ports.gates = gates.map(|name| Guard::new(name, points)).collect();
        }
        "checks" => {
            let checks = words.after_colon()?.0.split(',').map(guard);
            script.ports.checks = checks.collect::<Read<_>>()?;
        }
        "parallel" => script.spec.execution = Execution::Parallel { max: words.number()? },
        "approver" => script.ports.approver = true,
        "prompt" => script.prompt = words.after_colon()?.text()?,
        other => return Err(format!("`{other}` configures nothing")),
    }
    Ok(())
}

fn tool(text: &str) -> Read<ToolDef> {
    let mut words = text.split_whitespace();
    let name = words.next().ok_or("a tool needs a name")?;
    let mut def = ToolDef::new(name, format!("the tool {name}"));
    for flag in words {
        match flag {
            "pure" => def.class = RetryClass::Pure,
            "idempotent" => def.class = RetryClass::Idempotent,
            "unsafe" => def.class = RetryClass::Unsafe,
            "sequential" => def.sequential = true,
            "polling" => def.polling = true,
            "approval" => def.requires_approval = true,
            other => return Err(format!("`{other}` is no flag of a tool")),
        }
    }
    Ok(def)
}

/// A check and where it is asked.
fn guard(text: &str) -> Read<Guard> {
    let mut words = text.split_whitespace();
    let name = words.next().ok_or("a check needs a name")?;
    let mut points = Points::default();
    for word in words {
        points = points.and(match word {
            "prompt" => Points::PROMPT,
            "answer" => Points::ANSWER,
            "end" => Points::END,
            "result" => Points::RESULT,
            "invalid" => Points::INVALID,
            other => return Err(format!("`{other}` is no point of a check")),
        });
    }
    Ok(Guard::new(name, points))
}

fn set_limit(spec: &mut TurnSpec, text: &str) -> Read<()> {
    let (name, value) = text.trim().split_once(' ').ok_or("a limit is a name and a number")?;
    let number = || value.parse::<u32>().map_err(|e| format!("`{value}`: {e}"));
    let limits = &mut spec.limits;
    match name {
        "iterations" => limits.iterations = number()?,
        "calls" => limits.tool_calls = number()?,
        "invalid" => limits.invalid_outputs = number()?,
        "tokens" => limits.tokens = u64::from(number()?),
        "cost" => limits.cost = value.parse().map_err(|e| format!("{e}"))?,
        "elapsed" => limits.elapsed = Some(span(value)?),
        other => return Err(format!("`{other}` is no limit")),
    }
    Ok(())
}

fn span(text: &str) -> Read<Millis> {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let number: u64 = digits.parse().map_err(|e| format!("`{text}`: {e}"))?;
    match text.strip_prefix(digits) {
        Some("ms") => Ok(Millis(number)),
        Some("s") => Ok(Millis(number.saturating_mul(1_000))),
        Some("m") => Ok(Millis(number.saturating_mul(60_000))),
        _ => Err(format!("`{text}` is no time: a number and `ms`, `s` or `m`")),
    }
}

fn names(words: Words<'_>) -> Vec<GateName> {
    words.0.split_whitespace().map(GateName::from).collect()
}

fn number_of<'g>(name: &str, mut gates: impl Iterator<Item = &'g GateName>, line: &str) -> Read<u32> {
    let at = gates.position(|gate| *gate == name);
    at.and_then(|at| u32::try_from(at).ok()).ok_or_else(|| format!("`{name}` is not in `{line}:` above"))
}

fn model(mut words: Words<'_>) -> Read<Reply> {
    let message = match words.word() {
        "text" => AssistantMessage::text(words.text()?),
        "ask" => AssistantMessage::clarification(&words.text()?),
        "refuse" => AssistantMessage::refusal(words.text()?),
        "invalid" => AssistantMessage::invalid(&Invalid::new(words.text()?)),
        "approve" => {
            let (id, kind) = (words.word(), words.word());
            AssistantMessage::approval_request(&ApprovalRequest::new(id, kind, words.text()?))
        }
        "fault" => return model_fault(words),
        "call" => calls(&mut words)?,
        other => return Err(format!("`{other}` is no model output")),
    };
    let message = with_usage(message, words)?;
    Ok(Reply::Model(Ok(Arc::new(message.into()))))
}

fn model_fault(mut words: Words<'_>) -> Read<Reply> {
    let code = Json::string(words.word());
    let code: ModelFaultCode = code.to().map_err(|e| format!("{e}"))?;
    Ok(Reply::Model(Err(Box::new(ModelFault::new(code, words.text()?)))))
}

/// `NAME {…} #id`, and more of them after `, call`.
fn calls(words: &mut Words<'_>) -> Read<AssistantMessage> {
    let mut calls = Vec::new();
    loop {
        let (name, arguments) = (words.word(), words.json()?);
        calls.push(ToolCall::new(words.call()?, name, arguments));
        match words.0.strip_prefix(',') {
            Some(rest) => *words = Words(rest.trim_start()),
            None => return Ok(AssistantMessage::calls(calls)),
        }
        if words.word() != "call" {
            return Err("after a comma another `call` is expected".to_owned());
        }
    }
}

fn with_usage(mut message: AssistantMessage, mut words: Words<'_>) -> Read<AssistantMessage> {
    loop {
        match words.word() {
            "" => return Ok(message),
            "usage" => {
                let (input, output) = words.word().split_once('/').ok_or("usage is `INPUT/OUTPUT`")?;
                let number = |text: &str| text.parse::<u64>().map_err(|e| format!("`{text}`: {e}"));
                let cost = message.usage.as_deref().and_then(Usage::total_cost);
                let usage = Usage::tokens(number(input)?, number(output)?);
                message = message.with_usage(cost.map_or(usage.clone(), |cost| usage.with_cost(cost)));
            }
            "cost" => {
                let cost: Cost = words.word().parse().map_err(|e| format!("{e}"))?;
                let usage = message.usage.as_deref().cloned().unwrap_or_default();
                message = message.with_usage(usage.with_cost(cost));
            }
            other => return Err(format!("`{other}` was not expected here")),
        }
    }
}

fn execution(mut words: Words<'_>) -> Read<Reply> {
    let how = words.word();
    if how == "ok" {
        return Ok(Reply::Tool(Ok(Arc::new(ToolOutcome::text(words.0)))));
    }
    if how == "waits" {
        let id = words.word();
        let request = ApprovalRequest::new(id, id, words.text()?);
        return Ok(Reply::Tool(Ok(Arc::new(ToolOutcome::text("not yet").waiting_for([request])))));
    }
    let (code, text) = (words.word(), words.0);
    match how {
        "error" => Ok(Reply::Tool(Ok(Arc::new(ToolOutcome::error(code, text))))),
        "retry" => Ok(Reply::Tool(Ok(Arc::new(ToolOutcome::retryable(code, text))))),
        "fault" => Ok(Reply::Tool(Err(Fault::new(FaultSource::Tool, code, text)))),
        other => {
            Err(format!("`{other}` is no result: `ok`, `waits`, `error`, `retry` or `fault` was expected"))
        }
    }
}

fn verdict(mut words: Words<'_>) -> Read<Reply> {
    let verdict = match words.word() {
        "allow" => GateVerdict::Allow,
        "deny" => GateVerdict::Deny { message: words.text()? },
        "hold" => GateVerdict::Hold { reason: words.text()? },
        "halt" => {
            let message = words.text()?;
            GateVerdict::Halt { reason: message.clone(), message }
        }
        "rewrite" => GateVerdict::Rewrite(words.json()?),
        other => return Err(format!("`{other}` is no verdict")),
    };
    Ok(gate_says(verdict))
}

fn check_verdict(mut words: Words<'_>) -> Read<Reply> {
    let verdict = match words.word() {
        "accept" => CheckVerdict::Accept,
        "amend" => CheckVerdict::Amend(words.text()?),
        "waive" => CheckVerdict::Waive { why: words.text()? },
        "continue" => CheckVerdict::Continue { guidance: words.text()? },
        "ask" => CheckVerdict::Ask(Question::new(words.text()?, AskReason::Custom)),
        "refuse" => CheckVerdict::Refuse { reason: words.text()? },
        other => return Err(format!("`{other}` is no verdict of a check")),
    };
    Ok(check_says(verdict))
}

fn decision(mut words: Words<'_>) -> Read<Decision> {
    Ok(match words.word() {
        "granted" => Decision::Granted,
        "denied" => Decision::Denied { reason: words.text()? },
        "edited" => Decision::Edited(words.json()?),
        "later" => Decision::Later,
        other => return Err(format!("`{other}` is no decision")),
    })
}

fn arguments(mut words: Words<'_>) -> Read<Reply> {
    let path = words.word();
    Ok(Reply::Arguments(Err(Box::new(ArgumentFault::new(path, words.text()?)))))
}

/// What is left of a line.
struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    /// The next word; empty at the end. A colon or comma ends it, too, and stays.
    fn word(&mut self) -> &'a str {
        let end = self.0.find([' ', ':', ',']).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest.trim_start();
        word
    }

    fn after_colon(self) -> Read<Self> {
        let rest = self.0.strip_prefix(':').ok_or("a colon is missing")?;
        Ok(Self(rest.trim_start()))
    }

    fn number(&mut self) -> Read<u32> {
        let word = self.word();
        word.parse().map_err(|e| format!("`{word}`: {e}"))
    }

    /// `#id`
    fn call(&mut self) -> Read<CallId> {
        let word = self.word();
        word.strip_prefix('#')
            .map(CallId::from)
            .ok_or_else(|| format!("`{word}` is no call: `#ID` was expected"))
    }

    /// A JSON value.
    fn json(&mut self) -> Read<Json> {
        let mut values = serde_json::Deserializer::from_str(self.0).into_iter::<Box<RawValue>>();
        let value = values.next().ok_or("a JSON value is missing")?.map_err(|e| format!("{e}"))?;
        self.0 = self.0.get(values.byte_offset()..).unwrap_or_default().trim_start();
        Json::parse(value.get()).map_err(|e| format!("{e}"))
    }

    /// A JSON string.
    fn text(&mut self) -> Read<String> {
        self.json()?.to().map_err(|e| format!("a text in quotes was expected: {e}"))
    }
}
