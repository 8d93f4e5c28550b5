//! Changed streams never panic or hang, and how their bytes arrive never matters: framing and assembly.

use harness_adapters::AdapterError;
use harness_adapters::chat::{Assembler, Completion, ReplyLimits, Verdict};
use harness_core::port::DeltaPart;

use crate::fuzz_support::{Numbers, change, fuzz};

const SPICES: [&[u8]; 18] = [
    b"data: ",
    b"\n\n",
    b"\r",
    b"\r\n",
    b":",
    b": comment\n",
    b"[DONE]",
    b"{",
    b"}",
    b"[",
    b"\"",
    b"\\u",
    b"null",
    b",\"error\":{\"code\":502}",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\0",
    b"18446744073709551616",
];

/// Small enough that a changed stream passes each of them now and then.
fn limits() -> ReplyLimits {
    let mut limits = ReplyLimits::default();
    (limits.body, limits.line, limits.event) = (6_000, 2_000, 2_500);
    (limits.tool_calls, limits.reasoning_items) = (3, 3);
    limits
}

/// What a stream gives: the answer with its pieces, or the bound that it passed.
fn read<'a>(
    limits: ReplyLimits,
    reads: impl Iterator<Item = &'a [u8]>,
) -> (Completion, Vec<DeltaPart>, Option<AdapterError>) {
    let mut assembler = Assembler::new(limits);
    let mut parts = Vec::new();
    let mut reads = reads;
    let fault = reads.find_map(|bytes| assembler.feed(bytes, &mut |part| parts.push(part)).err());
    (assembler.finish(), parts, fault)
}

/// Reads a stream whole and in pieces, and holds the answer to what is true of every answer.
fn check(numbers: &mut Numbers, bytes: &[u8]) {
    let unbounded = ReplyLimits::default();
    let (answer, parts, fault) = read(unbounded.clone(), [bytes].into_iter());
    if let Some(fault) = fault {
        // A repeated piece makes an id longer than any may be; every other bound is far above these streams.
        assert!(matches!(fault, AdapterError::TooLarge { what: "id of a tool call", .. }), "{fault:?}");
        return;
    }
    let size = 1 + numbers.below(64);
    let (cut, cut_parts, _) = read(unbounded, bytes.chunks(size));
    assert_eq!(format!("{answer:?} {parts:?}"), format!("{cut:?} {cut_parts:?}"), "in pieces of {size}");

    let shown: usize =
        parts.iter().map(|part| if let DeltaPart::Text(text) = part { text.len() } else { 0 }).sum();
    let kept =
        answer.content.as_ref().map_or(0, String::len) + answer.refusal.as_ref().map_or(0, String::len);
    assert_eq!(shown, kept, "what was shown is what is kept");
    if answer.verdict() == Verdict::ToolRequest {
        assert!(answer.tool_calls.iter().all(|call| call.input().is_some()), "{answer:?}");
    }

    let (bounded, ..) = read(limits(), bytes.chunks(size));
    assert!(bounded.content.is_none_or(|text| text.len() <= 3 * 6_000), "a damaged byte becomes three");
    assert!(
        bounded.tool_calls.len() <= 4 && bounded.reasoning_details.len() <= 4,
        "one past the bound is seen"
    );
}

#[test]
fn changed_streams() {
    fuzz(env!("CARGO_MANIFEST_DIR"), |numbers, bytes, other| change(numbers, bytes, other, &SPICES), check);
}
