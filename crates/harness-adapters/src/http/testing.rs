//! Reading replies in tests, the same for every protocol.

use harness_core::message::{AssistantMessage, ModelOutput};
use harness_core::port::{DeltaPart, ModelFault};

use super::ReplyLimits;
use super::client::{Form, judge};
use super::draft::Asked;
use super::exchange::Reply;
use super::fault::Faults;
use super::frames::Frames;
use super::names::ToolNames;
use super::setup::Protocol;
use crate::AdapterError;

/// Message or error of a reply.
pub(crate) type Judged = Result<AssistantMessage, ModelFault>;

/// Reads a stream in these chunks.
pub(crate) fn stream<'a, F: Form>(
    protocol: &'static Protocol,
    reads: impl IntoIterator<Item = &'a [u8]>,
) -> (Judged, Vec<DeltaPart>) {
    let (limits, mut reply, mut pieces) = (ReplyLimits::default(), F::Reply::default(), Vec::new());
    let mut frames = Frames::new(&limits);
    for bytes in reads {
        frames.read(bytes, &mut reply, &limits, &mut |part| pieces.push(part)).unwrap();
    }
    (judged::<F>(protocol, reply), pieces)
}

/// Reads one document.
pub(crate) fn document<F: Form>(protocol: &'static Protocol, text: &str) -> (Judged, Vec<DeltaPart>) {
    let (mut reply, mut pieces) = (F::Reply::default(), Vec::new());
    reply.document(text, &ReplyLimits::default(), &mut |part| pieces.push(part)).unwrap();
    (judged::<F>(protocol, reply), pieces)
}

fn judged<F: Form>(protocol: &'static Protocol, mut reply: F::Reply) -> Judged {
    let names = ToolNames::of(["find.it"].into_iter());
    let provider = F::PROTOCOL.split('-').next().unwrap();
    let asked = Asked { protocol: F::PROTOCOL, provider, model: "m", names: &names, messages: 3 };
    judge(&mut reply, Ok(()), asked, &Faults::of("HOST", protocol))
}

/// Stop reason of a document, and what its message asks of the turn.
pub(crate) fn shown(judged: Judged) -> String {
    let message = match judged {
        Ok(message) => message,
        Err(fault) => return format!("error {} {}", fault.code.as_str(), fault.message),
    };
    let detail = match message.output() {
        ModelOutput::Invalid(invalid) => format!(" {}: {}", invalid.kind.unwrap(), invalid.reason),
        ModelOutput::Refusal { reason } => format!(": {reason}"),
        ModelOutput::FinalAnswer
        | ModelOutput::ToolRequest
        | ModelOutput::Clarification { .. }
        | ModelOutput::ApprovalRequest(_)
        | _ => String::new(),
    };
    format!("{} {}{detail}", message.stop_reason.as_str(), message.output_type())
}

/// The error of a document that exceeds a bound.
pub(crate) fn over<F: Form>(limits: &ReplyLimits, text: &str) -> AdapterError {
    F::Reply::default().document(text, limits, &mut |_| ()).unwrap_err()
}

/// Checks that each call is announced with the id that its message has.
#[track_caller]
pub(crate) fn check_ids((message, pieces): (Judged, Vec<DeltaPart>)) {
    let message = message.unwrap();
    let stored: Vec<_> = message.tool_calls().map(|call| Some(call.id.clone())).collect();
    let started: Vec<_> = pieces
        .into_iter()
        .filter_map(|piece| if let DeltaPart::CallStarted { id, .. } = piece { Some(id) } else { None })
        .collect();
    assert_eq!(started, stored);
    assert_eq!(started.len(), 2);
}
