//! The chat on a terminal that is not there: keys and events in, what the screen shows out.

mod acts;
mod reflow;

use std::sync::Arc;

use harness::core::Json;
use harness::core::message::ToolCall;
use harness::core::port::DeltaPart;
use harness::core::tool::ToolDef;
use harness::runtime::Status;

use super::*;
use crate::chat::composer::NoCandidates;
use crate::render::screen::Screen;

/// A chat on an emulated terminal.
struct Stage {
    app: App,
    screen: Screen<Vec<u8>>,
    terminal: vt100::Parser,
    columns: usize,
    wishes: Vec<Action>,
}

impl Stage {
    fn new(columns: u16, rows: u16) -> Self {
        let size = (usize::from(columns), usize::from(rows));
        let mut app = App::new(Styling::Plain, size, Vec::new(), Box::new(NoCandidates));
        app.set_now(Time(10_000));
        Self {
            app,
            screen: Screen::new(Vec::new(), Styling::Plain),
            terminal: vt100::Parser::new(rows, columns, 100),
            columns: columns.into(),
            wishes: Vec::new(),
        }
    }

    /// Types a text; `⏎` is Enter, `⎋` Esc, `^c` and the like are keys with Ctrl.
    fn keys(&mut self, keys: &str) {
        let mut chars = keys.chars();
        while let Some(c) = chars.next() {
            let key = match c {
                '⏎' => Key::of(Code::Enter),
                '⎋' => Key::of(Code::Esc),
                '^' => Key::ctrl(Code::Char(chars.next().unwrap())),
                c => Key::of(Code::Char(c)),
            };
            self.wishes.extend(self.app.key(key));
        }
    }

    /// An event: its type and its fields as JSON.
    fn event(&mut self, kind: &str, fields: &str) {
        let comma = if fields.is_empty() { "" } else { "," };
        let line = format!(
            r#"{{"seq":0,"at":10000,"type":"{kind}","turn":1,"iteration":1{comma}{fields},"origin":{{}}}}"#
        );
        let event = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
        self.app.see(&ThreadEvent::Event(event));
    }

    fn delta(&mut self, text: &str) {
        self.app.see(&ThreadEvent::Delta(DeltaPart::Text(text.to_owned())));
    }

    fn user(&mut self, text: &str) {
        self.event(
            "message_appended",
            &format!(r#""index":0,"message":{{"role":"user","content":"{text}"}}"#),
        );
    }

    fn answer(&mut self, text: &str) {
        let content = serde_json::json!([{ "type": "text", "text": text }]);
        self.event(
            "message_appended",
            &format!(r#""index":1,"message":{{"role":"assistant","content":{content},"stopReason":"stop"}}"#),
        );
    }

    fn works(&mut self) {
        let status = Status::Generating { run: "r".into(), since: Time(10_000) };
        self.app.see(&ThreadEvent::Status(status));
    }

    fn tick(&mut self, millis: i64) {
        self.app.set_now(Time(self.app.now.0 + millis));
    }

    /// What the terminal shows, rows without their trailing spaces.
    fn shown(&mut self) -> String {
        let (finished, frame) = (self.app.take_finished(), self.app.view());
        self.screen.draw(&finished, &frame, self.columns).unwrap();
        self.terminal.process(&self.screen.take_bytes());
        let rows: Vec<String> = self.terminal.screen().rows(0, 200).collect();
        let rows: Vec<&str> = rows.iter().map(|row| row.trim_end()).collect();
        rows.join("\n").trim_end().to_owned()
    }
}

const CALL: &str = r#""call":{"id":"c1","name":"look","arguments":{"at":"left"}}"#;

#[test]
fn a_question_and_its_answer() {
    let mut stage = Stage::new(40, 12);
    insta::assert_snapshot!(stage.shown(), @r"
    ───────────────────────────────────────
    ›
    /help
    ");
    stage.keys("hello⏎");
    assert_eq!(stage.wishes, [Action::Say("hello".to_owned())]);
    stage.works();
    stage.user("hello");
    stage.event("model_step_started", r#""agent":"main""#);
    insta::assert_snapshot!(stage.shown(), @r"
    › hello

    ⠋ thinking 0 ms
    ───────────────────────────────────────
    ›
    working 0 ms · Esc interrupts
    ");
    stage.tick(1_200);
    stage.delta("All is ");
    insta::assert_snapshot!(stage.shown(), @r"
    › hello

    All is
    ───────────────────────────────────────
    ›
    working 1.2 s · Esc interrupts
    ");
    stage.delta("well.");
    stage.event(
        "model_step_finished",
        r#""outputType":"text","durationMs":1,"usage":{"input":1200,"output":5}"#,
    );
    stage.answer("All is well.");
    stage.app.see(&ThreadEvent::Status(Status::Idle));
    insta::assert_snapshot!(stage.shown(), @r"
    › hello

    All is well.
    ───────────────────────────────────────
    ›
    1.2k + 5 tokens
    ");
}

#[test]
fn a_long_message_is_shown_up_to_its_tenth_line() {
    let lines = |count: usize| (1..=count).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\\n");
    let mut stage = Stage::new(40, 60);
    stage.user(&lines(40));
    assert!(stage.shown().contains("line 40"), "{}", stage.shown());
    let mut stage = Stage::new(40, 20);
    stage.user(&lines(41));
    insta::assert_snapshot!(stage.shown(), @r"
    › line 1
      line 2
      line 3
      line 4
      line 5
      line 6
      line 7
      line 8
      line 9
      line 10
      … 31 more lines
    ───────────────────────────────────────
    ›
    /help
    ");
}

#[test]
fn an_answer_that_did_not_stream_is_shown_whole() {
    let mut stage = Stage::new(40, 8);
    stage.user("hello");
    stage.delta("All ");
    stage.answer("Something else.");
    insta::assert_snapshot!(stage.shown(), @r"
    › hello

    All

    Something else.
    ───────────────────────────────────────
    ›
    /help
    ");
}

#[test]
fn a_call_is_one_line_and_can_be_looked_at_whole() {
    let mut stage = Stage::new(40, 14);
    stage.works();
    stage.user("look");
    stage.event("tool_started", CALL);
    stage.tick(1_240);
    insta::assert_snapshot!(stage.shown(), @r#"
    › look

    ⠹ look 1.2 s {"at":"left"}
    ───────────────────────────────────────
    ›
    working 1.2 s · Esc interrupts
    "#);
    let done = r#""outcome":{"status":"success","content":[{"type":"text","text":"a tree\nand a lake"}]},"durationMs":1300"#;
    stage.event("tool_finished", &format!("{CALL},{done}"));
    insta::assert_snapshot!(stage.shown(), @r#"
    › look

    ✓ look 1.3 s {"at":"left"}
    ───────────────────────────────────────
    ›
    working 1.2 s · Esc interrupts
    "#);
    stage.keys("^o");
    insta::assert_snapshot!(stage.shown(), @r#"
    › look

    ✓ look 1.3 s {"at":"left"}

    ✓ look 1.3 s
    │ {
    │   "at": "left"
    │ }
    │ a tree
    │ and a lake
    ───────────────────────────────────────
    ›
    working 1.2 s · Esc interrupts
    "#);
}

#[test]
fn a_failed_call_says_why() {
    let mut stage = Stage::new(60, 6);
    let failed = r#""outcome":{"status":"failed","content":[],"error":{"code":"gone","message":"it is not there"}},"durationMs":3,"ran":true"#;
    stage.event("tool_failed", &format!("{CALL},{failed}"));
    insta::assert_snapshot!(stage.shown(), @r#"
    ✗ look 3 ms: it is not there {"at":"left"}
    ───────────────────────────────────────────────────────────
    ›
    /help
    "#);
}

/// A chat in which a call has just been held.
fn held() -> Stage {
    let mut stage = Stage::new(60, 10);
    stage.works();
    stage.app.set_asks([&payment()], None);
    stage
}

fn payment() -> ProposedCall {
    let call = ToolCall::new("p1", "pay", Json::parse(r#"{"amount":5}"#).unwrap());
    ProposedCall::new(Arc::new(call), ToolDef::new("pay", "Pays"), "main".into(), 1).held("it needs approval")
}

/// The keys, once the question was there to be read, and what they wish for.
#[track_caller]
fn check_answer(keys: &str, expected: &[Verdict]) {
    let mut stage = held();
    stage.tick(500);
    stage.keys(keys);
    let answer =
        |verdict: &Verdict| Action::Answer { proposed: Box::new(payment()), verdict: verdict.clone() };
    let expected: Vec<Action> = expected.iter().map(answer).collect();
    assert_eq!(stage.wishes, expected, "{keys}");
}

#[test]
fn a_person_decides_about_a_call() {
    let mut stage = held();
    assert!(!stage.shown().contains("once"), "nobody can have read it");
    stage.tick(500);
    insta::assert_snapshot!(stage.shown(), @r#"
    ───────────────────────────────────────────────────────────
    ? pay {"amount":5}
      it needs approval
      y once · a always … · n no · d no, with a reason
    ›
    awaiting approval · Esc interrupts
    "#);
    stage.tick(500);
    stage.keys("d");
    insta::assert_snapshot!(stage.shown(), @r#"
    ───────────────────────────────────────────────────────────
    ? pay {"amount":5}
      it needs approval
    why not?
    Enter denies the call and sends the reason to the model, Es
    "#);
    let deny = |reason: &str| Verdict::Deny { reason: reason.to_owned() };
    check_answer("y", &[Verdict::Once]);
    check_answer("n", &[deny("the user denied this call")]);
    check_answer("dtoo much⏎", &[deny("too much")]);
    check_answer("dtoo⎋y", &[Verdict::Once]);
    check_answer("xy", &[]);
}

#[test]
fn fault_05_a_grant_says_what_it_is_for_and_is_confirmed_when_the_tool_is_unsafe() {
    let mut stage = held();
    stage.tick(500);
    stage.keys("a");
    stage.tick(500);
    stage.keys("2");
    assert!(!stage.shown().contains("y yes"), "nobody can have read it");
    stage.keys("y");
    assert_eq!(stage.wishes, [], "it has just appeared");
    stage.app.key(Key::of(Code::Backspace));
    stage.tick(500);
    assert!(stage.shown().contains("pay is unsafe. Grant every call? y yes"), "{}", stage.shown());
    stage.keys("⎋");
    stage.tick(500);
    assert!(stage.shown().contains("a always …"), "{}", stage.shown());
    for (key, scope) in [("1", Scope::Arguments), ("2", Scope::Tool)] {
        let mut stage = held();
        for key in ["a", key, "y"] {
            stage.tick(500);
            assert_eq!(stage.wishes, []);
            stage.keys(key);
        }
        let verdict = Verdict::Grant(scope);
        assert_eq!(stage.wishes, [Action::Answer { proposed: Box::new(payment()), verdict }]);
    }
}

#[test]
fn fault_01_a_call_in_the_chat_runs_only_after_all_of_it_was_shown() {
    let mut stage = Stage::new(60, 14);
    stage.works();
    let note = "\u{202e}".to_owned() + &"x".repeat(900);
    let arguments = format!(r#"{{"note":"{note}","account":"ATTACKER"}}"#);
    let call = ToolCall::new("p1", "pay", Json::parse(&arguments).unwrap());
    let proposed = ProposedCall::new(Arc::new(call), ToolDef::new("pay", "Pays"), "main".into(), 1);
    stage.app.set_asks([&proposed], None);
    stage.tick(500);
    let mut pages = String::new();
    assert!(!stage.shown().contains("ATTACKER"), "the first page does not hold all of it");
    for _ in 0..10 {
        let shown = stage.shown();
        pages.push_str(&shown);
        if shown.contains("y once") {
            break;
        }
        assert!(shown.contains("not shown yet"), "{shown}");
        stage.keys("ya");
        assert_eq!(stage.wishes, []);
        // What no question takes is written in the editor.
        while !stage.app.composer.text().is_empty() {
            stage.app.key(Key::of(Code::Backspace));
        }
        stage.keys("v");
    }
    assert!(pages.contains("ATTACKER") && pages.contains(r"\u{202e}"), "{pages}");
    stage.keys("y");
    assert_eq!(stage.wishes, [Action::Answer { proposed: Box::new(proposed), verdict: Verdict::Once }]);
}

#[test]
fn a_question_takes_no_key_from_somebody_who_is_writing() {
    let mut stage = held();
    stage.keys("y");
    assert_eq!(stage.wishes, [], "it has just appeared");
    stage.tick(500);
    stage.keys("es");
    assert_eq!(stage.wishes, [], "a word is being written");
    insta::assert_snapshot!(stage.shown(), @r#"
    ───────────────────────────────────────────────────────────
    ? pay {"amount":5}
      it needs approval
      send or clear the text in the editor, then decide
    › yes
    awaiting approval · Esc interrupts
    "#);
    stage.keys("⏎");
    assert_eq!(stage.wishes, [Action::Say("yes".to_owned())]);
}

#[test]
fn what_waits_is_shown_until_it_is_delivered() {
    let mut stage = Stage::new(40, 10);
    stage.works();
    stage.event("tool_started", CALL);
    stage.app.set_waiting(vec![Waiting { entry: "msg-1".into(), text: "be brief".to_owned() }]);
    insta::assert_snapshot!(stage.shown(), @r#"
    ⠋ look 0 ms {"at":"left"}
    queued: be brief
    ───────────────────────────────────────
    ›
    working 0 ms · Esc interrupts
    "#);
    stage.app.set_waiting(Vec::new());
    stage.user("be brief");
    insta::assert_snapshot!(stage.shown(), @r#"
    › be brief

    ⠋ look 0 ms {"at":"left"}
    ───────────────────────────────────────
    ›
    working 0 ms · Esc interrupts
    "#);
}

#[test]
fn escape_interrupts_and_control_c_leaves_when_it_is_pressed_twice() {
    let mut stage = Stage::new(60, 6);
    stage.keys("⎋");
    assert_eq!(stage.wishes, [], "there is nothing to interrupt");
    stage.works();
    stage.keys("⎋^c");
    assert_eq!(stage.wishes, [Action::Interrupt, Action::Interrupt]);
    insta::assert_snapshot!(stage.shown(), @r"
    ───────────────────────────────────────────────────────────
    ›
    press Ctrl-C again to exit
    ");
    stage.keys("^c");
    assert_eq!(stage.wishes.last(), Some(&Action::Quit));
}

#[test]
fn control_c_empties_the_editor_and_control_d_leaves_an_empty_one() {
    let mut stage = Stage::new(60, 6);
    stage.keys("abc^d^c");
    assert_eq!((stage.wishes.as_slice(), stage.app.composer.text()), ([].as_slice(), ""));
    stage.keys("^d");
    assert_eq!(stage.wishes, [Action::Quit]);
}

#[test]
fn a_small_terminal_keeps_the_editor() {
    let mut stage = Stage::new(16, 5);
    stage.works();
    stage.user("a question of several words");
    stage.delta("An answer\nof many\nlines\nthat is not\nover and done");
    stage.keys("more");
    insta::assert_snapshot!(stage.shown(), @r"
      several words
    done
    ───────────────
    › more
    working 0 ms ·
    ");
}

#[test]
fn why_a_run_ended_is_told() {
    let mut stage = Stage::new(60, 8);
    stage.event("run_finished", r#""end":{"stop":{"reason":"cancelled","evidence":{"cancelled":{"by":"user"}}},"iterations":1,"turns":1,"elapsed":5,"usage":{"modelCalls":0,"toolCalls":0}}"#);
    insta::assert_snapshot!(stage.shown(), @r"
    ■ interrupted
    ───────────────────────────────────────────────────────────
    ›
    /help
    ");
}

#[test]
fn a_skill_is_shown_as_it_was_asked_for() {
    let mut stage = Stage::new(60, 8);
    let message =
        r#"{"role":"user","origin":"skill","content":"<skill name=\"tidy\">\nSweep.\n</skill>\n\nthe hall"}"#;
    stage.event("message_appended", &format!(r#""index":0,"message":{message}"#));
    insta::assert_snapshot!(stage.shown(), @r"
    › /skill:tidy the hall
    ───────────────────────────────────────────────────────────
    ›
    /help
    ");
}

#[test]
fn why_a_compaction_failed_is_told_once() {
    let mut stage = Stage::new(60, 8);
    let fault = r#""fault":{"source":"compactor","code":"busy","message":"it is busy"}"#;
    stage.app.see(&ThreadEvent::Status(Status::Compacting));
    stage.event("compaction_failed", fault);
    stage.app.not_shorter("it is busy");
    stage.app.see(&ThreadEvent::Status(Status::Compacting));
    stage.app.not_shorter("it was cancelled");
    stage.app.see(&ThreadEvent::Status(Status::Idle));
    insta::assert_snapshot!(stage.shown(), @r"
    ! compaction failed: compactor: it is busy

    it was cancelled
    ───────────────────────────────────────────────────────────
    ›
    /help
    ");
}

#[test]
fn the_lines_of_a_fault_stay_lines() {
    let mut stage = Stage::new(60, 8);
    stage.event("run_finished", r#""end":{"stop":{"reason":"runtime_error","evidence":{"fault":{"source":"model","code":"recording","message":"it knows only:\n- one\n- two"}}},"iterations":1,"turns":1,"elapsed":5,"usage":{"modelCalls":0,"toolCalls":0}}"#);
    insta::assert_snapshot!(stage.shown(), @r"
    ! model: it knows only:
      - one
      - two
    ■ failed (runtime_error)
    ───────────────────────────────────────────────────────────
    ›
    /help
    ");
}

#[test]
fn commands_are_wishes_or_are_done_at_once() {
    let mut stage = Stage::new(100, 40);
    stage.keys("/undo 2⏎/modle x⏎/save⏎/help⏎/quit⏎");
    let help = Action::Do(Command::Help);
    let wishes = [Action::Do(Command::Undo(2)), Action::Guess("/modle x".to_owned()), help, Action::Quit];
    assert_eq!(stage.wishes, wishes);
    assert!(stage.shown().contains("usage: /save FILE"));
}
