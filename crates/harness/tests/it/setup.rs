//! What a builder refuses, all of it at once.

use harness::prelude::*;
use harness::{HarnessError, SetupFault};

use crate::support::Script;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[test]
fn all_problems_are_listed() {
    let tool = || tool_fn("same", "A tool", |_: Nothing, _| async { Ok::<_, std::io::Error>("done") });
    let error = Harness::new(Script::default())
        .instructions("one")
        .instructions("two")
        .tool(tool())
        .tool(tool())
        .limits(|limits| limits.iterations = 0)
        .build()
        .unwrap_err();
    let HarnessError::Setup(faults) = &error else { panic!("{error}") };
    assert!(matches!(
        &faults[..],
        [SetupFault::AgentsTwice { given: 2 }, SetupFault::SameTool { name }, SetupFault::Spec(_)] if name == "same"
    ));
    insta::assert_snapshot!(error, @r#"
    `agents`, `graph` and `instructions` exclude each other: 2 of them were given
    two tools are named `same`: a model could call only one of them
    `limits.iterations` is 0: it must be at least 1
    "#);
    assert_eq!(error.kind(), "harness.setup");
}
