//! Replies of an endpoint, read leniently.

use harness_core::Json;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::http::lenient::{Items, Raw, Record, decode, piece, text};
use crate::seam::Piece;

/// A chunk of a stream, or a whole reply.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Chunk<'a> {
    pub(super) id: Raw<'a>,
    pub(super) model: Raw<'a>,
    pub(super) provider: Raw<'a>,
    pub(super) choices: Items<Record<Choice<'a>>>,
    pub(super) usage: Raw<'a>,
    pub(super) error: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Choice<'a> {
    pub(super) index: Raw<'a>,
    pub(super) delta: Option<Record<Body<'a>>>,
    pub(super) message: Record<Body<'a>>,
    pub(super) finish_reason: Raw<'a>,
    pub(super) native_finish_reason: Raw<'a>,
    pub(super) usage: Raw<'a>,
    pub(super) error: Raw<'a>,
}

/// The message of a choice, whole or as a delta.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Body<'a> {
    pub(super) content: Raw<'a>,
    pub(super) reasoning: Raw<'a>,
    pub(super) reasoning_content: Raw<'a>,
    pub(super) reasoning_details: Raw<'a>,
    pub(super) refusal: Raw<'a>,
    pub(super) tool_calls: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct CallPart<'a> {
    pub(super) index: Raw<'a>,
    pub(super) id: Raw<'a>,
    pub(super) function: Record<FunctionPart<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct FunctionPart<'a> {
    pub(super) name: Raw<'a>,
    pub(super) arguments: Raw<'a>,
}

/// One part of a content that is a list.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ContentPart<'a> {
    #[serde(rename = "type")]
    kind: Raw<'a>,
    text: Raw<'a>,
    content: Raw<'a>,
}

/// A string, or the joined texts of a list of parts.
pub(super) fn content(raw: Raw<'_>) -> Option<Piece> {
    if let Some(piece) = piece(raw) {
        return Some(piece).filter(|piece| !piece.is_empty());
    }
    let parts: Vec<&RawValue> = decode(raw)?;
    let joined: String = parts
        .into_iter()
        .filter_map(|part| {
            let Some(fields) = decode::<ContentPart<'_>>(Some(part)) else { return text(Some(part)) };
            let kind = text(fields.kind).unwrap_or_default();
            let is_text = matches!(kind.as_str(), "" | "text" | "output_text" | "summary_text");
            text(fields.text).or_else(|| text(fields.content)).filter(|_| is_text)
        })
        .collect();
    (!joined.is_empty()).then(|| joined.into())
}

/// The argument text of a call: the string, or the compact JSON of anything else.
pub(super) fn arguments(raw: Raw<'_>) -> Option<Piece> {
    piece(raw).or_else(|| Some(Json::parse(raw?.get()).ok()?.text().to_owned().into()))
}
