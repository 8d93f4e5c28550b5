//! Keys and lines of the user's own acts: commands, edits, the status line.

use super::*;

#[test]
fn escape_pressed_twice_edits_the_last_message() {
    let mut stage = Stage::new(60, 6);
    stage.keys("⎋");
    assert!(stage.shown().contains("press Esc again to edit your last message"), "{}", stage.shown());
    stage.keys("x⎋");
    assert_eq!(stage.wishes, [], "another key came between");
    stage.keys("^u⎋⎋");
    assert_eq!(stage.wishes, [Action::Do(Command::Undo(1))]);
    let mut stage = Stage::new(60, 6);
    stage.works();
    stage.keys("⎋⎋");
    assert_eq!(stage.wishes, [Action::Interrupt, Action::Interrupt]);
}

#[test]
fn question_mark_on_an_empty_editor_shows_the_keys() {
    let mut stage = Stage::new(80, 30);
    stage.keys("?");
    let shown = stage.shown();
    assert!(shown.contains("Shift-Tab            change the mode"), "{shown}");
    assert_eq!(stage.app.composer.text(), "");
    stage.keys("why?");
    assert_eq!(stage.app.composer.text(), "why?");
}

#[test]
fn prompt_says_that_a_text_will_run_as_a_command() {
    let mut stage = Stage::new(20, 6);
    stage.keys("!ls 世界");
    insta::assert_snapshot!(stage.shown(), @r"
    ───────────────────
    ! ls 世界
    runs in your shell
    ");
    assert_eq!(stage.app.view().cursor, (1, 9));
    stage.app.key(Key::of(Code::Home));
    assert_eq!(stage.app.view().cursor, (1, 0), "before the sign");
    stage.keys("!");
    insta::assert_snapshot!(stage.shown(), @r"
    ───────────────────
    › !!ls 世界
    /help
    ");
    stage.keys("^k");
    assert!(stage.shown().ends_with("\n!\nruns in your shell"), "{}", stage.shown());
}

#[test]
fn command_of_the_user_is_shown_with_its_output() {
    let mut stage = Stage::new(40, 12);
    stage.keys("!ls -l⏎^g^z");
    assert_eq!(stage.wishes, [Action::Run("ls -l".to_owned()), Action::Draft, Action::Suspend]);
    stage.app.set_command(Some("ls -l"));
    stage.tick(1_200);
    insta::assert_snapshot!(stage.shown(), @r"
    ⠹ ! 1.2 s ls -l
    ───────────────────────────────────────
    ›
    Esc stops the command
    ");
    stage.keys("⎋");
    assert_eq!(stage.wishes.last(), Some(&Action::Interrupt));
    stage.app.set_command(None);
    stage.app.show_command("ls -l", "a\nexit code 1");
    insta::assert_snapshot!(stage.shown(), @r"
    ! ls -l
    │ a
    │ exit code 1
    ───────────────────────────────────────
    ›
    /help
    ");
}

#[test]
fn status_line_tells_mode_model_place_and_used_context() {
    let mut stage = Stage::new(100, 6);
    *stage.app.about_mut() = About {
        model: "small".to_owned(),
        place: Some("shop (main)".to_owned()),
        thinking: Some(ThinkingLevel::High),
        window: Some(200_000),
        mode: Some("ask".to_owned()),
    };
    let usage =
        r#""outputType":"text","durationMs":1,"usage":{"input":40000,"cacheRead":9000,"output":1000}"#;
    stage.event("model_step_finished", usage);
    insta::assert_snapshot!(stage.shown(), @r"
    ───────────────────────────────────────────────────────────────────────────────────────────────────
    ›
    ask · small · thinking high · shop (main) · 25% of 200k context · 40k + 1k tokens
    ");
    stage.app.resize(20, 6);
    assert!(stage.shown().ends_with("\nask · small"), "{}", stage.shown());
    stage.app.key(Key::of(Code::BackTab)).unwrap();
    let next = Action::Do(Command::Thinking(Thinking::Next));
    assert_eq!(stage.app.key(Key::alt(Code::Char('t'))), Some(next));
}

#[test]
fn end_of_a_long_run_calls_the_user_once() {
    for (millis, expected) in [(9_000, false), (10_000, true)] {
        let mut stage = Stage::new(60, 6);
        stage.works();
        stage.tick(millis);
        stage.app.see(&ThreadEvent::Status(Status::Idle));
        assert_eq!([stage.app.take_call(), stage.app.take_call()], [expected, false], "{millis}");
    }
}

#[test]
fn edit_is_shown_with_its_change() {
    let mut stage = Stage::new(40, 12);
    let call = r#""call":{"id":"e1","name":"file_edit","arguments":{"path":"a.rs","old_string":"one\ntwo","new_string":"one\n2"}}"#;
    let done = r#""outcome":{"status":"success","content":[]},"durationMs":3"#;
    stage.event("tool_finished", &format!("{call},{done}"));
    insta::assert_snapshot!(stage.shown(), @r"
    ✓ file_edit 3 ms a.rs
       one
      -two
      +2
    ───────────────────────────────────────
    ›
    /help
    ");
}

#[test]
fn page_keys_say_how_to_scroll() {
    let mut stage = Stage::new(80, 8);
    stage.app.key(Key::of(Code::PageUp));
    assert!(stage.shown().contains("Shift-PgUp"), "{}", stage.shown());
}
