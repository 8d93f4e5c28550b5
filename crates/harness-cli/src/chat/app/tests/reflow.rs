//! The conversation when the width of the terminal changes.

use super::*;
use crate::render::picture::Protocol;

impl Stage {
    fn resize(&mut self, columns: u16, rows: u16) {
        self.shown();
        self.columns = columns.into();
        self.terminal.screen_mut().set_size(rows, columns);
        self.app.resize(columns.into(), rows.into());
        let (lines, frame) = (self.app.reflow(), self.app.view());
        self.screen.reflow(&lines, &frame, (columns.into(), rows.into())).unwrap();
    }
}

#[test]
fn conversation_is_laid_out_for_the_new_width() {
    let mut stage = Stage::new(60, 20);
    stage.user("a question of eight words with a long end");
    stage.answer("| item | note |\n|---|---|\n| tent | two persons, green, with poles |\n\nAnd a sentence after the table.");
    stage.event("tool_started", CALL);
    stage.event("tool_finished", &format!(r#"{CALL},"outcome":{{"status":"success"}},"durationMs":1"#));
    stage.app.complain("a notice that is longer than the narrow terminal");
    stage.works();
    stage.event("model_step_started", r#""agent":"main""#);
    stage.delta("The first line of the answer is final.\n\nThe second one");
    stage.resize(30, 24);
    insta::assert_snapshot!(stage.shown(), @r#"
    › a question of eight words
      with a long end

    item │ note
    ─────┼───────────────────────
    tent │ two persons, green,
         │ with poles

    And a sentence after the
    table.

    ✓ look 1 ms {"at":"left"}

    a notice that is longer than
    the narrow terminal

    The first line of the answer
    is final.

    The second one
    ─────────────────────────────
    ›
    working 0 ms · Esc interrupts
    "#);
    stage.delta(" ends.");
    stage.answer("The first line of the answer is final.\n\nThe second one ends.");
    stage.resize(60, 20);
    insta::assert_snapshot!(stage.shown(), @r#"
    › a question of eight words with a long end

    item │ note
    ─────┼───────────────────────────────
    tent │ two persons, green, with poles

    And a sentence after the table.

    ✓ look 1 ms {"at":"left"}

    a notice that is longer than the narrow terminal

    The first line of the answer is final.

    The second one ends.
    ───────────────────────────────────────────────────────────
    ›
    working 0 ms · Esc interrupts
    "#);
}

#[test]
fn lines_that_the_screen_has_no_room_for_stay_above_it() {
    let mut stage = Stage::new(40, 8);
    for number in 1..=9 {
        stage.app.tell(&format!("notice {number}"));
    }
    stage.resize(60, 8);
    insta::assert_snapshot!(stage.shown(), @r#"
    notice 7

    notice 8

    notice 9
    ───────────────────────────────────────────────────────────
    ›
    /help
    "#);
}

#[test]
fn lines_of_a_suspended_chat_stay_as_they_are() {
    let mut stage = Stage::new(40, 8);
    stage.app.tell("before");
    stage.shown();
    stage.app.settle();
    stage.screen.settle();
    stage.app.tell("after");
    stage.resize(60, 8);
    insta::assert_snapshot!(stage.shown(), @r#"
    before

    after
    ───────────────────────────────────────────────────────────
    ›
    /help
    "#);
}

#[test]
fn image_of_a_message_is_shown_where_the_terminal_can() {
    let user = r#""index":0,"message":{"role":"user","content":[{"type":"text","text":"what is this?"},
        {"type":"image","data":"AAAA","mimeType":"image/png"}]}"#;
    let lines = |protocol| {
        let mut stage = Stage::new(40, 8);
        stage.app.set_pictures(protocol);
        stage.event("message_appended", user);
        let lines = stage.app.take_finished();
        assert_eq!(lines[1].plain(), "  [image image/png]");
        (lines.len(), lines.last().unwrap().to_ansi())
    };
    let (rows, last) = lines(Some(Protocol::Iterm));
    assert_eq!(rows, 15);
    assert!(last.ends_with("width=39;height=12;preserveAspectRatio=1:AAAA\x07\x1b8"), "{last}");
    assert_eq!(lines(None).0, 2);
}
