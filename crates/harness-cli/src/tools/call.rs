//! Trying one tool.

use std::fs::File;
use std::io::{Read, Write as _, stdin};
use std::sync::Arc;

use harness::core::message::{Block, ToolCall};
use harness::core::port::{ApprovalAsk, Approver as _, Decision, ProposedCall};
use harness::core::tool::{ToolCx, ToolDef, ToolOutcome, ToolStatus};
use harness::core::{Cancel, Json};
use harness::tools::Registry;

#[cfg(feature = "mcp")]
use super::servers;
use super::{Offered, local};
use crate::args::{Approve, InputArg, ToolsArgs};
use crate::error::CliError;
use crate::exit::Exit;
use crate::render::BAD;
use crate::run::approve::CommandLineApprover;
use crate::signal::Signals;
use crate::{output, secrets, terminal};

/// Bytes of an input that are read, at most.
const LONGEST: u64 = 1 << 20;

/// Calls a tool and prints its result.
pub(super) async fn call(args: &ToolsArgs, registry: &Registry, name: &str) -> Result<Exit, CliError> {
    let tool = find(registry, name).await?;
    let input = input(args.input.as_ref())?;
    let call = Arc::new(ToolCall::new("call-1", tool.def.name.as_str(), input));
    if let Err(fault) = tool.registry.check_dyn(&call) {
        return Err(CliError::ToolArguments { name: tool.def.name.to_string(), problem: fault.to_string() });
    }
    match perform(&tool, call, args.yes).await? {
        Ok(outcome) => show(&outcome, args.json),
        Err(exit) => Ok(exit),
    }
}

/// Finds the tool of that name or target. Queries only the servers whose namespace matches.
#[cfg_attr(not(feature = "mcp"), expect(clippy::unused_async, reason = "only servers take time to answer"))]
async fn find(registry: &Registry, name: &str) -> Result<Offered, CliError> {
    let is_it = |tool: &Offered| tool.target == name || tool.def.name == *name;
    let mut known = local(registry);
    if let Some(at) = known.iter().position(is_it) {
        return Ok(known.swap_remove(at));
    }
    #[cfg(feature = "mcp")]
    {
        let (remote, faults) = servers::that_may_have(registry, name).await;
        if let Some(fault) = faults.into_iter().next() {
            return Err(fault.into());
        }
        known.extend(remote);
        if let Some(at) = known.iter().position(is_it) {
            return Ok(known.swap_remove(at));
        }
    }
    Err(CliError::NoTool {
        registry: registry.file().to_owned(),
        name: name.to_owned(),
        known: known.iter().map(|tool| tool.def.name.to_string()).collect(),
    })
}

/// The arguments: a JSON object, exactly as it is written.
fn input(input: Option<&InputArg>) -> Result<Json, CliError> {
    let (origin, text) = match input {
        None => return Ok(Json::empty_object()),
        Some(InputArg::Text(text)) => ("on the command line".to_owned(), Ok(text.clone())),
        Some(InputArg::Stdin) => ("on standard input".to_owned(), read(stdin().lock())),
        Some(InputArg::File(file)) => {
            let opened = File::open(file).map_err(|fault| format!("cannot be read: {fault}"));
            (format!("in {}", file.display()), opened.and_then(read))
        }
    };
    let wrong = |problem: String| CliError::ToolInput { origin: origin.clone(), problem };
    let json = Json::parse(&text.map_err(wrong)?).map_err(|fault| wrong(format!("invalid JSON: {fault}")))?;
    if json.is_object() { Ok(json) } else { Err(wrong("not a JSON object".to_owned())) }
}

fn read(input: impl Read) -> Result<String, String> {
    let mut bytes = Vec::new();
    input.take(LONGEST + 1).read_to_end(&mut bytes).map_err(|fault| format!("cannot be read: {fault}"))?;
    if bytes.len() as u64 > LONGEST {
        return Err(format!("larger than {LONGEST} bytes"));
    }
    String::from_utf8(bytes)
        .map_err(|fault| format!("invalid UTF-8 at byte {}", fault.utf8_error().valid_up_to()))
}

/// Asks for approval where the tool needs it, and calls it; an exit code when it does not run to its end.
async fn perform(
    tool: &Offered,
    call: Arc<ToolCall>,
    approved: bool,
) -> Result<Result<ToolOutcome, Exit>, CliError> {
    let cancel = Cancel::new();
    let signals = Signals::listen().map_err(|source| CliError::Io { action: "listen for Ctrl-C", source })?;
    let mut cx = ToolCx::for_call(Arc::clone(&call));
    cx.cancel = cancel.clone();
    let work = async {
        if tool.def.requires_approval
            && !approved
            && let Err(exit) = approve(&cx, &tool.def).await
        {
            return Err(exit);
        }
        // A registry that fails is told like a tool that does.
        let answer = tool.registry.call_boxed(cx).await;
        let outcome = answer.unwrap_or_else(|fault| ToolOutcome::error(&*fault.code, fault.message.as_str()));
        Ok(secrets::redactor().outcome(outcome))
    };
    tokio::select! {
        biased;
        done = work => Ok(done),
        () = signals.watch(cancel) => Ok(Err(Exit::Cancelled)),
    }
}

async fn approve(cx: &ToolCx, def: &ToolDef) -> Result<(), Exit> {
    let proposed = ProposedCall::new(Arc::clone(&cx.call), def.clone(), cx.agent.clone(), cx.iteration);
    let proposed =
        ProposedCall { origin: Arc::clone(&cx.origin), ..proposed }.held("the tool needs approval");
    let ask = ApprovalAsk { proposed, cancel: cx.cancel.clone() };
    let (why, exit) = match CommandLineApprover::new(Approve::Ask).decide(ask).await {
        Decision::Granted => return Ok(()),
        Decision::Later => {
            ("it needs approval: use --yes, or a terminal to be asked on", Exit::AwaitingApproval)
        }
        Decision::Denied { .. } | Decision::Edited(_) => ("it was not approved", Exit::Refused),
    };
    let _ = writeln!(terminal::messages(), "`{}` was not called: {why}", cx.call.name);
    Err(exit)
}

/// Prints a result: what a model would read on standard output, or all of it as JSON.
fn show(outcome: &ToolOutcome, json: bool) -> Result<Exit, CliError> {
    let exit = if outcome.status == ToolStatus::Cancelled {
        Exit::Cancelled
    } else if outcome.is_error() {
        Exit::Failed
    } else {
        Exit::Completed
    };
    if json {
        return output::print_json(outcome, exit);
    }
    if let Some(error) = &outcome.error {
        let _ = writeln!(terminal::messages(), "{BAD}{}{BAD:#}", error.code);
    }
    let mut text: Vec<String> = outcome.content.iter().map(block).collect();
    if let (true, Some(error)) = (text.is_empty(), &outcome.error) {
        text.push(error.message.clone());
    }
    output::print_payload(&(text.join("\n") + "\n"), exit)
}

/// A block as text: an image by what it is.
fn block(block: &Block) -> String {
    if let Some(text) = block.as_text() {
        return text.to_owned();
    }
    let size = Json::of(block).map(|json| json.text().len()).unwrap_or_default();
    format!("({size} bytes of binary data; --json shows it)")
}
