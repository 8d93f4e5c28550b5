//! What a model can say, and what the turn makes of it.

use crate::bare::check_turn;

#[test]
fn an_answer_completes_the_turn() {
    check_turn(
        r#"
        prompt: "2 + 2?"
        model: text "4"
        "#,
        r#"
        message_appended user "2 + 2?"
        turn_started main
        model_step_started
        message_appended assistant "4"
        model_step_finished final_answer
        turn_finished answer_finalized
        completed: answer_finalized "4"
        "#,
    );
}

#[test]
fn an_invalid_output_is_told_to_the_model_and_may_be_mended() {
    check_turn(
        r#"
        model: invalid "garbled"
        model: text "done"
        "#,
        r#"
        ...
        model_step_finished invalid
        message_appended user "Your last answer could not be used: garbled. Answer again, in full."
        model_step_started
        message_appended assistant "done"
        model_step_finished final_answer
        turn_finished answer_finalized
        completed: answer_finalized "done"
        "#,
    );
}

#[test]
fn two_invalid_outputs_in_a_row_end_the_turn() {
    check_turn(
        r#"
        model: invalid "garbled"
        model: invalid "garbled again"
        "#,
        r#"
        ...
        model_step_finished invalid
        message_appended user "Your last answer could not be used: garbled. Answer again, in full."
        model_step_started
        message_appended assistant [error]
        model_step_finished invalid
        turn_finished model_invalid_response
        failed: model_invalid_response
        "#,
    );
}

#[test]
fn a_question_stops_the_turn() {
    check_turn(
        r#"
        model: ask "Which berth?"
        "#,
        r#"
        ...
        message_appended assistant "Which berth?"
        model_step_finished clarification
        clarification_requested "Which berth?"
        turn_finished clarification_required
        needs_clarification: clarification_required "Which berth?"
        "#,
    );
}

#[test]
fn a_refusal_fails_the_turn() {
    check_turn(
        r#"
        model: refuse "I will not"
        "#,
        r#"
        ...
        message_appended assistant [refusal]
        model_step_finished refusal
        turn_finished model_refused
        failed: model_refused "I will not"
        "#,
    );
}

#[test]
fn a_wish_for_approval_stops_the_turn() {
    check_turn(
        r#"
        model: approve ap-1 crane "Move crane 2"
        "#,
        r#"
        ...
        message_appended assistant "Move crane 2"
        model_step_finished approval_request
        approval_requested ap-1 "Move crane 2"
        turn_finished approval_required
        awaiting_approval: approval_required
        "#,
    );
}

#[test]
fn a_model_fault_fails_the_turn() {
    check_turn(
        r#"
        model: fault network "the line broke"
        "#,
        r#"
        ...
        model_step_failed model network "the line broke"
        message_appended assistant [error]
        turn_finished runtime_error
        failed: runtime_error
        "#,
    );
}

#[test]
fn messages_that_do_not_fit_defer_the_turn() {
    check_turn(
        r#"
        model: fault context_length_exceeded "too long"
        "#,
        r#"
        ...
        model_step_failed model context_length_exceeded "too long"
        turn_finished context_overflow
        deferred: context_overflow
        "#,
    );
}

#[test]
fn a_turn_neither_blocks_calls_nor_tidies_answers_by_itself() {
    check_turn(
        r#"
        tools: find
        model: call find {"q":"x"} #c1
        tool #c1: ok /a
        model: call find {"q":"y"} #c2
        tool #c2: ok /b
        model: text "Done. <invoke name=\"find\"></invoke>"
        "#,
        r#"
        ...
        tool_started #c1 find
        message_appended result #c1 "/a"
        tool_finished #c1
        ...
        tool_started #c2 find
        message_appended result #c2 "/b"
        tool_finished #c2
        model_step_started
        message_appended assistant "Done. <invoke name=\"find\"></invoke>"
        model_step_finished final_answer
        turn_finished answer_finalized
        completed: answer_finalized "Done. <invoke name=\"find\"></invoke>"
        "#,
    );
}
