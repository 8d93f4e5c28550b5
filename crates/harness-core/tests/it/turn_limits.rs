//! What ends a turn early: limits, deadlines, cancellation, interruption, crash.

use crate::bare::{bare, check_turn};
use crate::script::check_turn_with;

#[test]
fn law_3_no_iteration_is_permitted() {
    check_turn(
        r#"
        limits: iterations 0
        "#,
        r#"
        message_appended user "go"
        turn_started main
        limit_reached max_iterations_reached 0/0
        turn_finished max_iterations_reached
        deferred: max_iterations_reached
        "#,
    );
}

#[test]
fn law_3_the_last_permitted_iteration_may_answer() {
    check_turn(
        r#"
        limits: iterations 1
        model: text "4"
        "#,
        r#"
        ...
        message_appended assistant "4"
        model_step_finished final_answer
        turn_finished answer_finalized
        completed: answer_finalized "4"
        "#,
    );
}

#[test]
fn law_3_no_iteration_beyond_the_permitted_ones() {
    check_turn(
        r#"
        limits: iterations 1
        tools: add pure
        model: call add {} #c1
        tool #c1: ok 4
        "#,
        r#"
        ...
        tool_finished #c1
        limit_reached max_iterations_reached 1/1
        turn_finished max_iterations_reached
        deferred: max_iterations_reached
        "#,
    );
}

#[test]
fn law_3_no_call_is_permitted() {
    check_turn(
        r#"
        limits: calls 0
        tools: add pure
        model: call add {} #c1
        "#,
        r#"
        ...
        tool_requested #c1 add
        message_appended result #c1 error "This call did not run: the permitted tool calls are used up (0)."
        tool_failed #c1 cancelled not_run (never ran)
        limit_reached max_tool_calls_reached 0/0
        turn_finished max_tool_calls_reached
        deferred: max_tool_calls_reached
        "#,
    );
}

#[test]
fn law_3_the_model_sees_the_result_of_the_last_permitted_call() {
    check_turn(
        r#"
        limits: calls 1
        tools: add pure
        model: call add {} #c1
        tool #c1: ok 4
        model: text "4"
        "#,
        r#"
        ...
        tool_started #c1 add
        message_appended result #c1 "4"
        tool_finished #c1
        model_step_started
        message_appended assistant "4"
        model_step_finished final_answer
        turn_finished answer_finalized
        completed: answer_finalized "4"
        "#,
    );
}

#[test]
fn law_3_calls_beyond_the_permitted_ones_are_answered_not_run() {
    check_turn(
        r#"
        limits: calls 1
        tools: add pure
        model: call add {} #c1, call add {} #c2
        tool #c1: ok 4
        "#,
        r#"
        message_appended user "go"
        turn_started main
        model_step_started
        message_appended assistant #c1 add #c2 add
        model_step_finished tool_request
        tool_requested #c1 add #c2 add
        tool_started #c1 add
        message_appended result #c1 "4"
        tool_finished #c1
        message_appended result #c2 error "This call did not run: the permitted tool calls are used up (1)."
        tool_failed #c2 cancelled not_run (never ran)
        limit_reached max_tool_calls_reached 1/1
        turn_finished max_tool_calls_reached
        deferred: max_tool_calls_reached
        "#,
    );
}

#[test]
fn law_3_a_step_that_passes_the_budget_is_the_last() {
    check_turn(
        r#"
        limits: tokens 100
        tools: add pure
        model: call add {} #c1 usage 90/20
        tool #c1: ok 4
        "#,
        r#"
        ...
        tool_finished #c1
        limit_reached budget_reached 110/100
        turn_finished budget_reached
        deferred: budget_reached
        "#,
    );
}

#[test]
fn a_closing_step_sums_up_without_tools() {
    let mut spec = bare();
    spec.closing_step = true;
    check_turn_with(
        spec,
        r#"
        limits: iterations 2
        tools: add pure
        model: call add {} #c1
        tool #c1: ok 4
        model: text "So far: 4"
        "#,
        r#"
        ...
        message_appended result #c1 "4"
        tool_finished #c1
        limit_reached max_iterations_reached 2/2
        model_step_started
        message_appended assistant "So far: 4"
        model_step_finished final_answer
        turn_finished max_iterations_reached
        deferred: max_iterations_reached "So far: 4"
        "#,
    );
}

#[test]
fn the_deadline_cuts_off_a_tool_that_hangs() {
    check_turn(
        r#"
        limits: elapsed 30s
        tools: add pure
        model: call add {} #c1
        advance 40s
        "#,
        r#"
        ...
        tool_started #c1 add
        -- 30.0 s
        limit_reached timeout_reached 30000/30000
        message_appended result #c1 error "This call was cut off before it answered. It may have taken effect: check before it is repeated."
        tool_failed #c1 timeout interrupted
        turn_finished timeout_reached
        deferred: timeout_reached
        "#,
    );
}

#[test]
fn the_deadline_cuts_off_a_model_that_hangs() {
    check_turn(
        r#"
        limits: elapsed 30s
        advance 40s
        "#,
        r#"
        ...
        model_step_started
        -- 30.0 s
        limit_reached timeout_reached 30000/30000
        turn_finished timeout_reached
        deferred: timeout_reached
        "#,
    );
}

#[test]
fn a_cancellation_keeps_what_is_finished() {
    check_turn(
        r#"
        tools: add pure, pay
        parallel 4
        model: call add {} #c1, call pay {} #c2, call add {} #c3
        tool #c1: ok 1
        cancel
        tool #c3: ok 3
        "#,
        r#"
        message_appended user "go"
        turn_started main
        model_step_started
        message_appended assistant #c1 add #c2 pay #c3 add
        model_step_finished tool_request
        tool_requested #c1 add #c2 pay #c3 add
        tool_started #c1 add
        tool_started #c2 pay
        tool_started #c3 add
        message_appended result #c1 "1"
        tool_finished #c1
        tool_finished #c3
        message_appended result #c2 error "This call was cut off before it answered. It may have taken effect: check before it is repeated."
        tool_failed #c2 timeout interrupted
        message_appended result #c3 "3"
        message_appended assistant [aborted]
        turn_finished cancelled
        failed: cancelled
        "#,
    );
}

#[test]
fn an_answer_that_comes_after_the_cancellation_is_kept_with_its_calls_answered() {
    check_turn(
        r#"
        tools: add pure
        cancel
        model: call add {} #c1
        "#,
        r#"
        ...
        model_step_started
        message_appended assistant #c1 add
        model_step_finished tool_request
        message_appended result #c1 error "This call did not run: the turn had ended."
        message_appended assistant [aborted]
        turn_finished cancelled
        failed: cancelled
        "#,
    );
}

#[test]
fn a_cancellation_ends_the_wait_for_a_retry() {
    check_turn(
        r#"
        tools: add pure
        model: call add {} #c1
        tool #c1: retry busy later
        cancel
        "#,
        r#"
        ...
        tool_requested #c1 add
        tool_started #c1 add
        tool_retried #c1 2/3 after 200 busy
        message_appended result #c1 error "later"
        tool_failed #c1 failed busy
        message_appended assistant [aborted]
        turn_finished cancelled
        failed: cancelled
        "#,
    );
}

#[test]
fn a_cancelled_second_attempt_ends_once() {
    check_turn(
        r#"
        tools: add pure
        model: call add {} #c1
        tool #c1: retry busy later
        advance 1s
        cancel
        "#,
        r#"
        ...
        tool_requested #c1 add
        tool_started #c1 add
        tool_retried #c1 2/3 after 200 busy
        -- 1.0 s
        message_appended result #c1 error "This call was cut off before it answered. It may have taken effect: check before it is repeated."
        tool_failed #c1 timeout interrupted
        message_appended assistant [aborted]
        turn_finished cancelled
        failed: cancelled
        "#,
    );
}

#[test]
fn a_fatal_result_waits_for_its_siblings_no_longer_than_the_deadline() {
    check_turn(
        r#"
        limits: elapsed 30s
        tools: add pure
        parallel 4
        model: call add {} #c1, call add {} #c2
        tool #c1: fault tool_panicked broken
        advance 40s
        "#,
        r#"
        ...
        tool_requested #c1 add #c2 add
        tool_started #c1 add
        tool_started #c2 add
        message_appended result #c1 error "broken"
        tool_failed #c1 failed tool_panicked
        -- 30.0 s
        message_appended result #c2 error "This call was cut off before it answered. It may have taken effect: check before it is repeated."
        tool_failed #c2 timeout interrupted
        turn_finished runtime_error
        failed: runtime_error
        "#,
    );
}

#[test]
fn a_fatal_result_waits_for_its_siblings_no_longer_than_a_cancellation() {
    check_turn(
        r#"
        tools: add pure
        parallel 4
        model: call add {} #c1, call add {} #c2
        tool #c1: fault tool_panicked broken
        cancel
        "#,
        r#"
        ...
        tool_requested #c1 add #c2 add
        tool_started #c1 add
        tool_started #c2 add
        message_appended result #c1 error "broken"
        tool_failed #c1 failed tool_panicked
        message_appended result #c2 error "This call was cut off before it answered. It may have taken effect: check before it is repeated."
        tool_failed #c2 timeout interrupted
        turn_finished runtime_error
        failed: runtime_error
        "#,
    );
}

#[test]
fn law_5_after_a_crash_an_unsafe_call_is_answered_and_a_pure_one_runs_again() {
    check_turn(
        r#"
        tools: add pure, pay unsafe, log idempotent
        parallel 4
        model: call pay {} #c1, call log {} #c2, call add {} #c3
        crash
        tool #c2: ok logged
        tool #c3: ok 4
        model: text "done"
        "#,
        r#"
        message_appended user "go"
        turn_started main
        model_step_started
        message_appended assistant #c1 pay #c2 log #c3 add
        model_step_finished tool_request
        tool_requested #c1 pay #c2 log #c3 add
        tool_started #c1 pay
        tool_started #c2 log
        tool_started #c3 add
        -- crash
        call_repaired #c1 Interrupted
        call_repaired #c2 Rerun
        call_repaired #c3 Run
        message_appended result #c1 error "This call was cut off before it answered. It may have taken effect: check before it is repeated."
        tool_started #c2 log
        tool_started #c3 add
        message_appended result #c2 "logged"
        tool_finished #c2
        message_appended result #c3 "4"
        tool_finished #c3
        turn_started main
        model_step_started
        message_appended assistant "done"
        model_step_finished final_answer
        turn_finished answer_finalized
        completed: answer_finalized "done"
        "#,
    );
}

#[test]
fn law_4_after_a_crash_a_finished_result_is_used() {
    check_turn(
        r#"
        tools: pay unsafe
        parallel 4
        model: call pay {} #c1, call pay {} #c2
        tool #c2: ok paid
        crash
        model: text "done"
        "#,
        r#"
        ...
        tool_started #c1 pay
        tool_started #c2 pay
        tool_finished #c2
        -- crash
        call_repaired #c1 Interrupted
        call_repaired #c2 Recovered
        message_appended result #c1 error "This call was cut off before it answered. It may have taken effect: check before it is repeated."
        message_appended result #c2 "paid"
        turn_started main
        ...
        completed: answer_finalized "done"
        "#,
    );
}
