//! Calls: execution, retries, faults, loops, gates, approvals.

use harness_core::turn::OnToolFailure;

use crate::bare::{bare, check_turn};
use crate::script::check_turn_with;

#[test]
fn results_enter_the_transcript_in_call_order() {
    check_turn(
        r#"
        tools: add pure
        parallel 4
        model: call add {} #c1, call add {} #c2
        tool #c2: ok 2
        advance 1s
        tool #c1: ok 1
        model: text "done"
        "#,
        r#"
        message_appended user "go"
        turn_started main
        model_step_started
        message_appended assistant #c1 add #c2 add
        model_step_finished tool_request
        tool_requested #c1 add #c2 add
        tool_started #c1 add
        tool_started #c2 add
        tool_finished #c2
        -- 1.0 s
        message_appended result #c1 "1"
        tool_finished #c1
        message_appended result #c2 "2"
        model_step_started
        message_appended assistant "done"
        model_step_finished final_answer
        turn_finished answer_finalized
        completed: answer_finalized "done"
        "#,
    );
}

#[test]
fn a_tool_that_demands_it_runs_alone() {
    check_turn(
        r#"
        tools: add pure, move pure sequential
        parallel 4
        model: call add {} #c1, call move {} #c2
        tool #c1: ok 1
        tool #c2: ok 2
        model: text "done"
        "#,
        r#"
        ...
        tool_started #c1 add
        message_appended result #c1 "1"
        tool_finished #c1
        tool_started #c2 move
        message_appended result #c2 "2"
        tool_finished #c2
        ...
        completed: answer_finalized "done"
        "#,
    );
}

#[test]
fn a_call_of_no_offered_tool_ends_a_turn_that_ends_on_errors() {
    let mut spec = bare();
    spec.on_tool_failure = OnToolFailure::EndOnError;
    check_turn_with(
        spec,
        r#"
        tools: add pure
        model: call add {} #c1, call fly {} #c2
        "#,
        r#"
        ...
        model_step_finished tool_request
        message_appended result #c1 error "This call did not run: the turn ended first (tool_unavailable)."
        tool_failed #c1 cancelled not_run (never ran)
        message_appended result #c2 error "This call did not run: the turn ended first (tool_unavailable)."
        tool_failed #c2 cancelled not_run (never ran)
        turn_finished tool_unavailable
        failed: tool_unavailable
        "#,
    );
}

#[test]
fn a_call_of_no_offered_tool_is_answered_to_the_model() {
    let mut spec = bare();
    spec.on_tool_failure = OnToolFailure::Answer;
    check_turn_with(
        spec,
        r#"
        tools: add pure
        model: call fly {} #c1
        model: text "done"
        "#,
        r#"
        ...
        tool_requested #c1 fly
        message_appended result #c1 error "There is no tool named `fly`. Available: `add`."
        tool_failed #c1 failed unknown_tool (never ran)
        ...
        completed: answer_finalized "done"
        "#,
    );
}

#[test]
fn a_tool_that_panics_ends_a_bare_turn() {
    check_turn(
        r#"
        tools: add pure
        model: call add {} #c1, call add {} #c2
        tool #c1: fault tool_panicked no such number
        "#,
        r#"
        ...
        tool_requested #c1 add #c2 add
        tool_started #c1 add
        message_appended result #c1 error "no such number"
        tool_failed #c1 failed tool_panicked
        message_appended result #c2 error "This call did not run: the turn ended first (runtime_error)."
        tool_failed #c2 cancelled not_run (never ran)
        turn_finished runtime_error
        failed: runtime_error
        "#,
    );
}

#[test]
fn a_lasting_error_is_for_the_model() {
    check_turn(
        r#"
        tools: add pure
        model: call add {} #c1
        tool #c1: error overflow too large
        model: text "done"
        "#,
        r#"
        ...
        tool_started #c1 add
        message_appended result #c1 error "too large"
        tool_failed #c1 failed overflow
        ...
        completed: answer_finalized "done"
        "#,
    );
}

#[test]
fn a_retryable_error_is_tried_again_after_its_waits() {
    check_turn(
        r#"
        tools: add pure
        model: call add {} #c1
        tool #c1: retry busy later
        tool #c1: retry busy later
        tool #c1: retry busy later
        model: text "done"
        "#,
        r#"
        message_appended user "go"
        turn_started main
        model_step_started
        message_appended assistant #c1 add
        model_step_finished tool_request
        tool_requested #c1 add
        tool_started #c1 add
        tool_retried #c1 2/3 after 200 busy
        -- 200 ms
        tool_retried #c1 3/3 after 500 busy
        -- 700 ms
        message_appended result #c1 error "later"
        tool_failed #c1 failed busy
        model_step_started
        message_appended assistant "done"
        model_step_finished final_answer
        turn_finished answer_finalized
        completed: answer_finalized "done"
        "#,
    );
}

#[test]
fn three_equal_results_of_equal_calls_are_a_loop() {
    check_turn(
        r#"
        tools: add pure
        model: call add {} #c1
        tool #c1: ok 4
        model: call add {} #c2
        tool #c2: ok 4
        model: call add {} #c3
        tool #c3: ok 4
        "#,
        r#"
        ...
        message_appended result #c1 "4"
        tool_finished #c1
        ...
        message_appended result #c2 "4"
        tool_finished #c2
        ...
        message_appended result #c3 "4"
        tool_finished #c3
        limit_reached redundant_tool_loop
        turn_finished redundant_tool_loop
        failed: redundant_tool_loop
        "#,
    );
}

#[test]
fn equal_results_of_different_calls_are_no_loop() {
    check_turn(
        r#"
        tools: add pure
        model: call add {"a":1} #c1, call add {"a":2} #c2, call add {"a":3} #c3
        tool #c1: ok 4
        tool #c2: ok 4
        tool #c3: ok 4
        model: text "done"
        "#,
        r#"
        ...
        tool_started #c1 add
        message_appended result #c1 "4"
        tool_finished #c1
        tool_started #c2 add
        message_appended result #c2 "4"
        tool_finished #c2
        tool_started #c3 add
        message_appended result #c3 "4"
        tool_finished #c3
        ...
        completed: answer_finalized "done"
        "#,
    );
}

#[test]
fn a_gate_denies_and_nobody_else_is_asked() {
    check_turn(
        r#"
        tools: pay
        gates: policy audit
        approver
        model: call pay {} #c1
        gate policy #c1: deny "not on Sundays"
        model: text "done"
        "#,
        r#"
        ...
        tool_requested #c1 pay
        decided #c1 call policy deny "not on Sundays"
        message_appended result #c1 error "not on Sundays"
        tool_failed #c1 failed tool_blocked (never ran)
        model_step_started
        message_appended assistant "done"
        model_step_finished final_answer
        turn_finished answer_finalized
        completed: answer_finalized "done"
        "#,
    );
}

#[test]
fn a_held_call_still_asks_the_other_gates() {
    check_turn(
        r#"
        tools: pay
        gates: policy audit
        approver
        model: call pay {} #c1
        gate policy #c1: hold "above 50"
        gate audit #c1: deny "account closed"
        model: text "done"
        "#,
        r#"
        ...
        tool_requested #c1 pay
        decided #c1 call policy hold "above 50"
        decided #c1 call audit deny "account closed"
        message_appended result #c1 error "account closed"
        tool_failed #c1 failed tool_blocked (never ran)
        ...
        completed: answer_finalized "done"
        "#,
    );
}

#[test]
fn a_gate_holds_and_a_person_grants() {
    check_turn(
        r#"
        tools: pay
        gates: policy
        approver
        model: call pay {"cents":9000} #c1
        gate policy #c1: hold "above 50"
        approve #c1: granted
        tool #c1: ok paid
        model: text "done"
        "#,
        r#"
        message_appended user "go"
        turn_started main
        model_step_started
        message_appended assistant #c1 pay
        model_step_finished tool_request
        tool_requested #c1 pay
        decided #c1 call policy hold "above 50"
        approval_requested c1 "above 50"
        approval_decided #c1 granted
        tool_started #c1 pay
        message_appended result #c1 "paid"
        tool_finished #c1
        model_step_started
        message_appended assistant "done"
        model_step_finished final_answer
        turn_finished answer_finalized
        completed: answer_finalized "done"
        "#,
    );
}

#[test]
fn a_person_denies() {
    check_turn(
        r#"
        tools: pay approval
        approver
        model: call pay {} #c1
        approve #c1: denied "too much"
        model: text "done"
        "#,
        r#"
        ...
        tool_requested #c1 pay
        approval_requested c1 "`pay` needs approval"
        approval_decided #c1 denied "too much"
        message_appended result #c1 error "Denied: too much"
        tool_failed #c1 failed tool_blocked (never ran)
        ...
        completed: answer_finalized "done"
        "#,
    );
}

#[test]
fn changed_arguments_are_checked_again_and_a_second_hold_denies() {
    check_turn(
        r#"
        tools: pay
        gates: policy
        approver
        model: call pay {"cents":9000} #c1
        gate policy #c1: hold "above 50"
        approve #c1: edited {"cents":8000}
        gate policy #c1: hold "still above 50"
        model: text "done"
        "#,
        r#"
        ...
        tool_requested #c1 pay
        decided #c1 call policy hold "above 50"
        approval_requested c1 "above 50"
        approval_decided #c1 edited
        decided #c1 call policy hold "still above 50"
        message_appended result #c1 error "Denied: the changed arguments would need another approval."
        tool_failed #c1 failed tool_blocked (never ran)
        ...
        completed: answer_finalized "done"
        "#,
    );
}

#[test]
fn wrong_arguments_are_answered_before_any_gate() {
    check_turn(
        r#"
        tools: pay
        gates: policy
        model: call pay {} #c1
        arguments #c1: cents "a number was expected"
        model: text "done"
        "#,
        r#"
        ...
        tool_requested #c1 pay
        message_appended result #c1 error "argument `cents` is wrong: a number was expected"
        tool_failed #c1 failed invalid_arguments (never ran)
        model_step_started
        message_appended assistant "done"
        model_step_finished final_answer
        turn_finished answer_finalized
        completed: answer_finalized "done"
        "#,
    );
}

#[test]
fn a_call_that_needs_approval_parks_the_turn_when_nobody_decides() {
    check_turn(
        r#"
        tools: pay approval, add pure
        model: call pay {} #c1, call add {} #c2
        tool #c2: ok 4
        "#,
        r#"
        ...
        tool_requested #c1 pay #c2 add
        approval_requested c1 "`pay` needs approval"
        tool_started #c2 add
        tool_finished #c2
        turn_finished approval_required
        awaiting_approval: approval_required
        "#,
    );
}

#[test]
fn what_is_pushed_in_while_a_call_is_parked_stays_out_of_the_transcript() {
    check_turn(
        r#"
        tools: pay approval
        approver
        model: call pay {} #c1
        steer "hurry"
        approve #c1: later
        "#,
        r#"
        ...
        tool_requested #c1 pay
        approval_requested c1 "`pay` needs approval"
        approval_decided #c1 later
        turn_finished approval_required
        awaiting_approval: approval_required
        "#,
    );
}

#[test]
fn steering_enters_before_the_next_step() {
    check_turn(
        r#"
        tools: add pure
        model: call add {} #c1
        steer "in words, please"
        tool #c1: ok 4
        model: text "four"
        "#,
        r#"
        message_appended user "go"
        turn_started main
        model_step_started
        message_appended assistant #c1 add
        model_step_finished tool_request
        tool_requested #c1 add
        tool_started #c1 add
        message_appended result #c1 "4"
        tool_finished #c1
        message_appended user "in words, please"
        steering_injected line 4
        model_step_started
        message_appended assistant "four"
        model_step_finished final_answer
        turn_finished answer_finalized
        completed: answer_finalized "four"
        "#,
    );
}
