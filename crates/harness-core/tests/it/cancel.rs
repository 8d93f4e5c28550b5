//! Cancellation with reasons.

use futures_util::FutureExt as _;
use harness_core::Cancel;

#[test]
fn child_fires_with_its_parent_and_alone() {
    let parent = Cancel::new();
    let (with, alone) = (parent.child(), parent.child().child());
    alone.cancel();
    assert!(alone.is_cancelled() && alone.cancelled().now_or_never().is_some());
    assert!(!with.is_cancelled() && !parent.is_cancelled());
    parent.cancel();
    assert!(with.is_cancelled() && with.cancelled().now_or_never().is_some());
}

#[test]
fn first_reason_is_kept_and_inherited() {
    let parent = Cancel::new();
    let (child, sibling) = (parent.child(), parent.child());
    assert!(child.cancel_with("first") && !child.cancel_with("second"));
    assert_eq!(
        (child.reason().as_deref(), sibling.reason(), parent.is_cancelled()),
        (Some("first"), None, false)
    );
    assert!(parent.cancel_with("all"));
    assert_eq!((child.reason().as_deref(), sibling.reason().as_deref()), (Some("first"), Some("all")));
    assert!(!sibling.cancel_with("late") && parent.child().is_cancelled());
    assert_eq!(parent.child().child().reason().as_deref(), Some("all"));
}

#[test]
fn cancel_without_reason_has_the_default_reason() {
    let parent = Cancel::new();
    parent.cancel();
    assert_eq!(parent.child().reason().as_deref(), Some("cancelled"));
    assert!(!parent.cancel_with("late"));
}
