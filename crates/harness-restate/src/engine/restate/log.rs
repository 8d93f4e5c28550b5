//! The object `HarnessLog`: the records and events of one thread, in pages.

use std::time::Duration;

use restate_sdk::endpoint::{ContextInternal, Error};
use restate_sdk::errors::TerminalError;
use restate_sdk::serde::Json;
use serde::de::DeserializeOwned;

use super::call::{KeepAsk, ReadAsk, ReadReply};
use super::service::{HandlerSpec, Handlers, LOG, ServiceSpec, input, output};
use crate::durable::{BlobHash, ControlReply, LogEntry, LogPages};

/// The beginning of the keys of texts.
const TEXT: &str = "text-";
/// Pages of one reply, at most.
const PAGES: u64 = 16;

pub(super) fn spec() -> ServiceSpec {
    let append = HandlerSpec { name: "append", is_private: true, ..HandlerSpec::default() };
    let public = |name| HandlerSpec { name, ..HandlerSpec::default() };
    let shared = |name| HandlerSpec { name, is_shared: true, ..HandlerSpec::default() };
    ServiceSpec {
        name: LOG,
        is_object: true,
        is_lazy: true,
        handlers: vec![
            append,
            public("keep"),
            public("remove"),
            public("forget"),
            shared("read"),
            shared("kept"),
        ],
        keeps_journal: Duration::ZERO,
        inactivity: Duration::from_mins(1),
        attempts: (u64::from(u32::MAX), false),
    }
}

#[derive(Debug)]
pub(super) struct Log;

impl Handlers for Log {
    async fn handle(&self, ctx: &ContextInternal, handler: &str) -> Result<(), Error> {
        match handler {
            "append" => {
                let (entries, _) = input(ctx).await;
                output(ctx, append(ctx, entries).await);
            }
            "read" => {
                let (ask, _) = input(ctx).await;
                output(ctx, read(ctx, ask).await);
            }
            "keep" => {
                let (ask, _) = input(ctx).await;
                keep(ctx, ask);
                output(ctx, Ok::<_, TerminalError>(()));
            }
            "remove" => {
                let (hash, _) = input::<BlobHash>(ctx).await;
                ctx.clear(&text_key(&hash));
                output(ctx, Ok::<_, TerminalError>(()));
            }
            "forget" => {
                let (before, _) = input(ctx).await;
                output(ctx, forget(ctx, before).await);
            }
            "kept" => {
                let (hash, _) = input::<BlobHash>(ctx).await;
                output(ctx, value::<String>(ctx, &text_key(&hash)).await);
            }
            unknown => return Err(Error::unknown_handler(LOG, unknown)),
        }
        Ok(())
    }
}

async fn append(ctx: &ContextInternal, entries: Vec<LogEntry>) -> Result<ControlReply, TerminalError> {
    let len = len(ctx).await?;
    let last = LogPages::page_of(len);
    let mut log = LogPages::resume(len, page(ctx, last).await?);
    match log.append(entries) {
        Ok(now) if now == len => {}
        Ok(now) => {
            for (page, entries) in log.pages().filter(|(page, _)| *page >= last) {
                ctx.set(&key(page), Json(entries));
            }
            ctx.set("len", now);
        }
        Err(refusal) => return Ok(ControlReply::Refused(refusal.to_string())),
    }
    Ok(ControlReply::Appended(log.len()))
}

async fn read(ctx: &ContextInternal, ask: ReadAsk) -> Result<ReadReply, TerminalError> {
    let len = len(ctx).await?;
    let mut entries = Vec::new();
    let first = first(ctx).await?;
    let (from, upto) = (ask.from.max(first), ask.upto.min(len));
    if from < upto {
        let page_of_first = LogPages::page_of(from);
        for at in page_of_first..=LogPages::page_of(upto - 1).min(page_of_first + PAGES - 1) {
            let wanted = |entry: &LogEntry| (from..upto).contains(&entry.seq);
            entries.extend(page(ctx, at).await?.into_iter().filter(wanted));
        }
    }
    Ok(ReadReply { entries, first, len })
}

/// Keeps a text. Agents of events and states of runs are such texts.
fn keep(ctx: &ContextInternal, ask: KeepAsk) {
    ctx.set(&text_key(&ask.hash), Json(ask.text));
}

/// Removes the first entries, and all texts.
async fn forget(ctx: &ContextInternal, before: u64) -> Result<(), TerminalError> {
    let (from, before) = (first(ctx).await?, before.min(len(ctx).await?));
    if from < before {
        let last = LogPages::page_of(before);
        let mut kept = page(ctx, last).await?;
        kept.retain(|entry| entry.seq >= before);
        (LogPages::page_of(from)..=last).for_each(|page| ctx.clear(&key(page)));
        if !kept.is_empty() {
            ctx.set(&key(last), Json(kept));
        }
        ctx.set("first", before);
    }
    let texts = ctx.get_keys().await?.into_iter().filter(|key| key.starts_with(TEXT));
    texts.for_each(|key| ctx.clear(&key));
    Ok(())
}

fn text_key(hash: &BlobHash) -> String {
    format!("{TEXT}{hash}")
}

async fn len(ctx: &ContextInternal) -> Result<u64, TerminalError> {
    Ok(ctx.get("len").await?.unwrap_or(0))
}

/// The first entry that is not forgotten.
async fn first(ctx: &ContextInternal) -> Result<u64, TerminalError> {
    Ok(ctx.get("first").await?.unwrap_or(0))
}

async fn page(ctx: &ContextInternal, at: u64) -> Result<Vec<LogEntry>, TerminalError> {
    Ok(value(ctx, &key(at)).await?.unwrap_or_default())
}

fn key(page: u64) -> String {
    format!("page-{page}")
}

/// A value of the state.
pub(super) async fn value<T: DeserializeOwned + 'static>(
    ctx: &ContextInternal,
    key: &str,
) -> Result<Option<T>, TerminalError> {
    Ok(ctx.get(key).await?.map(|Json(value)| value))
}
