//! Suites of recorded runs.

use std::fs;
use std::sync::Arc;

use harness_record::{
    Case, CaseRunner, FileSink, FolderSink, Judge, JudgeAsk, JudgeVerdict, NoJudge, RecordSink, Suite,
    SuiteReport, run_suite,
};

use super::*;

/// Answers each case by its name.
struct Runner;

impl CaseRunner for Runner {
    async fn run(&self, case: &Case, _: &RunRecord) -> Result<RunRecord, String> {
        let scene = match case.name.as_str() {
            "changed" => Scene::new([says("Something else.")], []),
            "throws" => return Err("the descriptor cannot be read".to_owned()),
            "panics" => panic!("in the runner"),
            "fails" => Scene::new([], []),
            _ => Scene::new([asks([call("c1", "look", "{}")]), says("Done.")], [ToolOutcome::text("4")]),
        };
        // The scripted run has a runtime of its own, which must not be inside this one.
        std::thread::spawn(move || scene.run().record).join().map_err(|_| "no run".to_owned())
    }
}

/// Says what it is told to say.
struct Says(Result<&'static str, String>);

impl Judge for Says {
    async fn judge(&self, ask: JudgeAsk<'_>) -> Result<JudgeVerdict, String> {
        assert_eq!(ask.metadata.map(Json::text), Some(r#"{"team":"desk"}"#));
        self.0.clone().map(|text| json(text).to().unwrap())
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// A folder with a baseline, and the report of a suite with these cases.
fn report<J: Judge>(cases: &str, judge: Option<&J>) -> SuiteReport {
    let folder = tempfile::tempdir().unwrap();
    let record = std::thread::spawn(|| {
        Scene::new([asks([call("c1", "look", "{}")]), says("Done.")], [ToolOutcome::text("4")]).run().record
    });
    let sink = FileSink::new(folder.path().join("base.json"));
    block_on(sink.write(Arc::new(record.join().unwrap()))).unwrap();
    let path = folder.path().join("suite.yaml");
    fs::write(&path, format!("version: 1\nsuite: desk\nmetadata: {{ team: desk }}\ncases:\n{cases}"))
        .unwrap();
    let suite = Suite::read(&path).unwrap();
    block_on(run_suite(&suite, &Runner, judge))
}

#[test]
fn cases_pass_change_or_fail_and_none_ends_the_suite() {
    let cases = "  - { name: same, baseline: base.json }
  - { name: changed, baseline: base.json }
  - { name: throws, baseline: base.json }
  - { name: panics, baseline: base.json }
  - { name: fails, baseline: base.json }
  - { name: lost, baseline: none.json }
  - { baseline: base.json, expect: { shouldUseTools: [pay], shouldAvoidTools: [look] } }
";
    let report = report::<NoJudge>(cases, None);
    let text = report.text();
    let text = text.lines().map(|line| line.split(" `/").next().unwrap()).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(text, @r#"
    pass   same
    change changed
           response: "Done." → "Something else."
           toolCalls.length: 1 → 0
           toolCalls[0]: {"name":"look","argsHash":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"} → nothing
    FAIL   throws
           the descriptor cannot be read
    FAIL   panics
           the runner panicked
    FAIL   fails
           the candidate failed (runtime_error): model: the scripted model has no step for request 1: add one
           response: "Done." → nothing
           toolCalls.length: 1 → 0
           toolCalls[0]: {"name":"look","argsHash":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"} → nothing
    FAIL   lost
           cannot read run record
    FAIL   run-1
           required tool `pay` was not called
           forbidden tool `look` was called
    desk: 7 cases, 1 passed, 1 changed, 5 failed
    "#);
    assert_eq!((report.totals.passed, report.totals.warned, report.totals.failed), (1, 1, 5));
    let changed = &report.cases[1];
    assert_eq!(
        Json::of(&changed.signals).unwrap().text(),
        r#"{"statusChanged":false,"toolsChanged":true,"policyChanged":false,"finalOutputChanged":true}"#
    );
}

#[test]
fn a_judge_can_only_make_it_worse() {
    let case = "  - { name: same, baseline: base.json }\n";
    let pass = r#"{"verdict":"pass","summary":"as good"}"#;
    let fail =
        r#"{"verdict":"fail","summary":"rude","findings":[{"severity":"error","reason":"it shouts"}]}"#;
    let judged = |said: Result<&'static str, String>| report(case, Some(&Says(said))).text();
    insta::assert_snapshot!(judged(Ok(pass)), @r#"
    pass   same
           judge: as good
    desk: 1 case, 1 passed, 0 changed, 0 failed
    "#);
    insta::assert_snapshot!(judged(Ok(fail)), @r#"
    FAIL   same
           it shouts
           judge: rude
    desk: 1 case, 0 passed, 0 changed, 1 failed
    "#);
    insta::assert_snapshot!(judged(Err("no answer".to_owned())), @r#"
    FAIL   same
           no verdict: no answer
    desk: 1 case, 0 passed, 0 changed, 1 failed
    "#);
}

#[track_caller]
fn check_refused(text: &str, expected: &str) {
    let error = Suite::from_text("s.yaml", text).unwrap_err();
    assert_eq!(error.kind(), "suite.not_a_suite");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn invalid_suite_is_reported_with_place() {
    check_refused(
        "version: 1\ncases: []\n",
        "s.yaml:2:8: cases: the suite has no cases; write `- baseline: RECORD` for each case",
    );
    let newer = Suite::from_text("s.yaml", "version: 2\ncases: [{ baselin: a }]\n").unwrap_err();
    assert_eq!(newer.kind(), "suite.version");
    assert_eq!(newer.to_string(), "s.yaml:1:10: unsupported version 2, expected 1");
    check_refused(
        "version: 1\ncases: [{ baselin: a }]\n",
        "s.yaml:2:11: unknown key `baselin` in cases[0]; did you mean `baseline`?",
    );
}

#[test]
fn a_folder_has_a_file_for_each_run_that_sorts_by_its_start() {
    let folder = tempfile::tempdir().unwrap();
    let sink = FolderSink::new(folder.path().join("records/of/me"));
    let mut record = std::thread::spawn(|| usual().run().record).join().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for (run, day) in [("run-b", 1), ("run-a", 2), ("../run:a", 2), ("run-b", 1)] {
        (record.run_id, record.started_at) = (run.to_owned(), format!("2026-01-0{day}T00:00:00.000Z"));
        runtime.block_on(sink.write(Arc::new(record.clone()))).unwrap();
    }
    let names = fs::read_dir(sink.folder()).unwrap().map(|file| file.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    let expected = [
        "20260101T000000.000Z-run-b.json",
        "20260102T000000.000Z-run-a.json",
        "20260102T000000.000Z-runa.json",
    ];
    assert_eq!(names, expected);
    assert_eq!(RunRecord::read(sink.folder().join(expected[0])).unwrap(), record);
    fs::write(folder.path().join("file"), "").unwrap();
    let nowhere = FolderSink::new(folder.path().join("file/records"));
    let error = runtime.block_on(nowhere.write(Arc::new(record))).unwrap_err();
    assert_eq!(error.kind(), "record.write_failed");
}

#[test]
fn a_record_file_is_whole_and_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let sink = FileSink::new(folder.path().join("r.json"));
    let record = std::thread::spawn(|| usual().run().record).join().unwrap();
    for _ in 0..2 {
        block_on(sink.write(Arc::new(record.clone()))).unwrap();
    }
    assert_eq!(RunRecord::read(sink.path()).unwrap(), record);
    assert_eq!(fs::metadata(sink.path()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    let nowhere = FileSink::new(folder.path().join("no/such/r.json"));
    let error = block_on(nowhere.write(Arc::new(record))).unwrap_err();
    assert_eq!(error.kind(), "record.write_failed");
}
