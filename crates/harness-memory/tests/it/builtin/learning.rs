//! Layers that learn from what is said: observations, temporal facts.

use std::sync::Arc;

use harness_core::Time;
use harness_core::port::BoxFuture;
use harness_memory::MemoryError;
use harness_memory::builtin::{FactFinder, Observations, Observer, TemporalFacts};
use harness_memory::layer::LayerCx;

use super::{answers, json, probe, run, says, shown, state, with};

fn observations(threshold: u64, kept: usize) -> Observations {
    with(Observations::new(), |layer| {
        (layer.threshold, layer.kept) = (threshold, kept);
        layer.observer = Some(Arc::new(Counting));
    })
}

/// Notes how many texts it saw, or fails while a text says `fail`.
struct Counting;

impl Observer for Counting {
    fn observe<'a>(
        &'a self,
        texts: &'a [String],
        _: &'a LayerCx,
    ) -> BoxFuture<'a, Result<Vec<String>, MemoryError>> {
        Box::pin(async move {
            if texts.last().is_some_and(|text| text == "fail") {
                return Err(MemoryError::failed("the observer is down"));
            }
            Ok(vec![format!("saw {}", texts.join("+"))])
        })
    }
}

#[test]
fn observations_are_made_when_enough_was_said_and_the_newest_are_kept() {
    let mut layer = probe(observations(2, 2));
    says(&mut layer, "1234");
    assert_eq!(state(&layer), r#"{"observations":[],"buffer":["1234"],"bufferTokens":1,"version":0}"#);
    answers(&mut layer, "5678");
    for text in ["long text", "another one", "</observations> and more"] {
        says(&mut layer, text);
    }
    answers(&mut layer, "");
    insta::assert_snapshot!(shown(&mut layer, 100), @r"
    <observations>
    - saw another one
    - saw <\/observations> and more
    </observations>
    ");
    assert_eq!(shown(&mut layer, 15), "", "the newest alone is too long");
    assert_eq!(shown(&mut layer, 16), "<observations>\n- saw <\\/observations> and more\n</observations>");
}

#[test]
fn what_an_observer_could_not_see_is_kept_for_the_next_time() {
    let mut layer = probe(observations(1, 50));
    says(&mut layer, "one");
    says(&mut layer, "fail");
    let expected = r#"{"observations":["saw one"],"buffer":["fail"],"bufferTokens":1,"version":1,"failed":"the observer is down"}"#;
    assert_eq!(state(&layer), expected);
    says(&mut layer, "two");
    let expected = r#"{"observations":["saw one","saw fail+two"],"buffer":[],"bufferTokens":0,"version":2}"#;
    assert_eq!(state(&layer), expected);
}

#[test]
fn texts_that_nobody_observes_are_bounded() {
    let mut layer = probe(observations(1, 50));
    for _ in 0..100 {
        says(&mut layer, "fail");
    }
    assert_eq!(state(&layer).matches(r#""fail""#).count(), 16);
}

/// Takes each text `TIME=FACT` for a fact.
struct Equations;

impl FactFinder for Equations {
    fn extract<'a>(
        &'a self,
        texts: &'a [String],
        _: Time,
        _: &'a LayerCx,
    ) -> BoxFuture<'a, Result<Vec<(String, String)>, MemoryError>> {
        let pairs = texts.iter().filter_map(|text| text.split_once('='));
        let found = pairs.map(|(time, fact)| (time.to_owned(), fact.to_owned())).collect();
        Box::pin(async { Ok(found) })
    }
}

#[test]
fn the_date_is_shown_in_local_time() {
    let now = Time::parse_iso("2025-03-09T23:05:00Z").unwrap();
    let show = |minutes| {
        let mut layer = probe(with(TemporalFacts::new(), |layer| layer.utc_offset = minutes));
        layer.cx.now = now;
        shown(&mut layer, 200)
    };
    insta::assert_snapshot!(show(0), @r"
    <current_datetime>
    Now: 2025/03/09 (Sun) 23:05
    Work out relative dates (today, tomorrow, last week) from this date and time.
    </current_datetime>
    ");
    assert!(show(60).contains("Now: 2025/03/10 (Mon) 00:05"));
    assert!(show(-24 * 60).contains("Now: 2025/03/08 (Sat) 23:05"));
}

#[test]
fn facts_are_shown_newest_first_as_far_as_they_fit_and_the_oldest_go() {
    let layer = TemporalFacts::new().with_finder(Arc::new(Equations));
    let layer = with(layer, |layer| (layer.threshold, layer.kept) = (1, 3));
    let mut layer = probe(layer.ungrounded().with_ledger());
    for text in ["2025-02-01=b", "2025-01-01=a", "2025-02-01=c", "2025-02-01=b", "2025-03-01=d"] {
        says(&mut layer, text);
    }
    insta::assert_snapshot!(shown(&mut layer, 100), @r"
    <remembered_facts>
    - [2025-03-01] d
    - [2025-02-01] c
    - [2025-02-01] b
    </remembered_facts>
    ");
    assert_eq!(shown(&mut layer, 14), "<remembered_facts>\n- [2025-03-01] d\n</remembered_facts>");
    assert_eq!(shown(&mut layer, 5), "");
    let found = run(layer.call("searchMemory", json(r#"{"query":"d"}"#))).unwrap();
    assert_eq!(found, json(r#""[2025-03-01] d\n[2025-02-01] c\n[2025-02-01] b""#));
}

#[test]
fn without_a_finder_nothing_is_gathered() {
    let mut layer = probe(TemporalFacts::new());
    says(&mut layer, "2025-02-01=b");
    answers(&mut layer, "2025-02-01=b");
    assert_eq!(state(&layer), "nothing");
}
