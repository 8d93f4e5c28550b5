//! Replies of an endpoint, read leniently.

use serde::Deserialize;

use crate::http::lenient::Raw;

/// An event of a stream, or a whole reply.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Event<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Raw<'a>,
    pub(super) object: Raw<'a>,
    pub(super) response: Raw<'a>,
    pub(super) output_index: Raw<'a>,
    pub(super) content_index: Raw<'a>,
    pub(super) item: Raw<'a>,
    pub(super) delta: Raw<'a>,
    pub(super) error: Raw<'a>,
}

/// Response, complete or in progress.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Response<'a> {
    pub(super) id: Raw<'a>,
    pub(super) model: Raw<'a>,
    pub(super) status: Raw<'a>,
    pub(super) incomplete_details: Raw<'a>,
    pub(super) error: Raw<'a>,
    pub(super) output: Raw<'a>,
    pub(super) usage: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct IncompleteDetails<'a> {
    pub(super) reason: Raw<'a>,
}

/// An item of the output.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct ItemPart<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Raw<'a>,
    pub(super) id: Raw<'a>,
    pub(super) status: Raw<'a>,
    pub(super) phase: Raw<'a>,
    pub(super) content: Raw<'a>,
    pub(super) summary: Raw<'a>,
    pub(super) call_id: Raw<'a>,
    pub(super) name: Raw<'a>,
    pub(super) arguments: Raw<'a>,
}

/// A part of a message or of reasoning.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct ContentPart<'a> {
    pub(super) text: Raw<'a>,
    pub(super) refusal: Raw<'a>,
    pub(super) annotations: Raw<'a>,
}
