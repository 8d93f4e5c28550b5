//! Calls whose own work waits for approval.

use crate::bare::check_turn;

#[test]
fn a_call_whose_work_waits_is_performed_again_when_it_is_granted() {
    check_turn(
        r#"
        tools: task, add pure
        gates: policy
        model: call task {} #c1, call add {} #c2
        gate policy #c1: allow
        tool #c1: waits sign "Sign it?"
        tool #c2: ok 4
        decide #c1: granted
        tool #c1: ok signed
        model: text "done"
        "#,
        r#"
        ...
        tool_requested #c1 task #c2 add
        decided #c1 call policy allow
        tool_started #c1 task
        decided #c2 call policy allow
        tool_started #c2 add
        tool_finished #c2
        turn_finished approval_required
        awaiting_approval: approval_required
        call_repaired #c2 Recovered
        tool_started #c1 task
        message_appended result #c1 "signed"
        tool_finished #c1
        message_appended result #c2 "4"
        ...
        completed: answer_finalized "done"
        "#,
    );
}

#[test]
fn it_may_wait_again() {
    check_turn(
        r#"
        tools: task idempotent
        model: call task {} #c1
        tool #c1: retry busy later
        tool #c1: waits sign "Sign it?"
        decide #c1: granted
        tool #c1: waits pay "Pay, too?"
        decide #c1: granted
        tool #c1: ok paid
        model: text "done"
        "#,
        r#"
        ...
        awaiting_approval: approval_required
        tool_started #c1 task
        turn_finished approval_required
        awaiting_approval: approval_required
        tool_started #c1 task
        message_appended result #c1 "paid"
        tool_finished #c1
        ...
        completed: answer_finalized "done"
        "#,
    );
}

#[test]
fn without_a_decision_about_it_it_goes_on_waiting() {
    check_turn(
        r#"
        tools: task, pay approval
        parallel 2
        model: call task {} #c1, call pay {} #c2
        tool #c1: waits sign "Sign it?"
        decide #c2: granted
        tool #c2: ok paid
        decide #c1: granted
        tool #c1: ok signed
        model: text "done"
        "#,
        r#"
        ...
        awaiting_approval: approval_required
        approval_decided #c2 granted
        call_repaired #c2 Run
        tool_started #c2 pay
        tool_finished #c2
        turn_finished approval_required
        awaiting_approval: approval_required
        ...
        completed: answer_finalized "done"
        "#,
    );
}

#[test]
fn a_denial_is_its_result() {
    check_turn(
        r#"
        tools: task
        model: call task {} #c1
        tool #c1: waits sign "Sign it?"
        decide #c1: denied "too late"
        model: text "done"
        "#,
        r#"
        ...
        awaiting_approval: approval_required
        message_appended result #c1 error "Denied: too late"
        ...
        completed: answer_finalized "done"
        "#,
    );
}

/// What it did before may have taken effect, so it is never said that it did not run.
#[test]
fn it_is_cut_off_when_something_else_is_said_or_the_turn_ends() {
    check_turn(
        r#"
        tools: task
        model: call task {} #c1
        tool #c1: waits sign "Sign it?"
        next "Forget it"
        model: text "forgotten"
        "#,
        r#"
        ...
        awaiting_approval: approval_required
        call_repaired #c1 Interrupted
        message_appended result #c1 error "This call was cut off before it answered. It may have taken effect: check before it is repeated."
        message_appended user "Forget it"
        ...
        completed: answer_finalized "forgotten"
        "#,
    );
    check_turn(
        r#"
        tools: task, add pure
        parallel 2
        model: call task {} #c1, call add {} #c2
        tool #c1: waits sign "Sign it?"
        cancel
        "#,
        r#"
        ...
        tool_failed #c1 cancelled interrupted
        ...
        failed: cancelled
        "#,
    );
    check_turn(
        r#"
        limits: calls 1
        tools: task
        model: call task {} #c1
        tool #c1: waits sign "Sign it?"
        decide #c1: granted
        cancel
        "#,
        r#"
        ...
        awaiting_approval: approval_required
        tool_started #c1 task
        ...
        failed: cancelled
        "#,
    );
}
