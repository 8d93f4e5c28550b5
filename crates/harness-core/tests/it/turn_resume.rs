//! Turns that go on where an earlier one stopped.

use crate::bare::check_turn;

#[test]
fn a_parked_call_is_decided_when_the_turn_is_resumed() {
    check_turn(
        r#"
        tools: pay approval, add pure
        approver
        model: call pay {} #c1, call add {} #c2
        approve #c1: later
        tool #c2: ok 4
        resume
        approve #c1: granted
        tool #c1: ok paid
        model: text "done"
        "#,
        r#"
        message_appended user "go"
        turn_started main
        model_step_started
        message_appended assistant #c1 pay #c2 add
        model_step_finished tool_request
        tool_requested #c1 pay #c2 add
        approval_requested c1 "`pay` needs approval"
        approval_decided #c1 later
        tool_started #c2 add
        tool_finished #c2
        turn_finished approval_required
        awaiting_approval: approval_required
        call_repaired #c1 Run
        call_repaired #c2 Recovered
        approval_requested c1 "`pay` needs approval"
        approval_decided #c1 granted
        tool_started #c1 pay
        message_appended result #c1 "paid"
        tool_finished #c1
        message_appended result #c2 "4"
        turn_started main resumed
        model_step_started
        message_appended assistant "done"
        model_step_finished final_answer
        turn_finished answer_finalized
        completed: answer_finalized "done"
        "#,
    );
}

#[test]
fn a_parked_call_is_not_run_when_something_else_is_said() {
    check_turn(
        r#"
        tools: pay approval
        approver
        model: call pay {} #c1
        approve #c1: later
        next "forget it"
        model: text "forgotten"
        "#,
        r#"
        ...
        tool_requested #c1 pay
        approval_requested c1 "`pay` needs approval"
        approval_decided #c1 later
        turn_finished approval_required
        awaiting_approval: approval_required
        call_repaired #c1 NotRun
        message_appended result #c1 error "This call did not run: the turn that asked for it ended before the call started."
        message_appended user "forget it"
        turn_started main resumed
        model_step_started
        message_appended assistant "forgotten"
        model_step_finished final_answer
        turn_finished answer_finalized
        completed: answer_finalized "forgotten"
        "#,
    );
}

#[test]
fn a_deferred_turn_goes_on_with_fresh_limits() {
    check_turn(
        r#"
        limits: iterations 1
        tools: add pure
        model: call add {} #c1
        tool #c1: ok 4
        resume
        model: text "4"
        "#,
        r#"
        ...
        limit_reached max_iterations_reached 1/1
        turn_finished max_iterations_reached
        deferred: max_iterations_reached
        turn_started main resumed
        model_step_started
        message_appended assistant "4"
        model_step_finished final_answer
        turn_finished answer_finalized
        completed: answer_finalized "4"
        "#,
    );
}

#[test]
fn a_question_is_answered_by_the_next_message() {
    check_turn(
        r#"
        model: ask "Which berth?"
        next "Berth 4"
        model: text "It is free."
        "#,
        r#"
        ...
        clarification_requested "Which berth?"
        turn_finished clarification_required
        needs_clarification: clarification_required "Which berth?"
        message_appended user "Berth 4"
        turn_started main resumed
        model_step_started
        message_appended assistant "It is free."
        model_step_finished final_answer
        turn_finished answer_finalized
        completed: answer_finalized "It is free."
        "#,
    );
}
