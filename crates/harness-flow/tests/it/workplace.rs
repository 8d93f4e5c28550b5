//! Where steps work: ports, the working folder, params.

use std::fmt::Write as _;
use std::sync::Arc;

use harness_core::port::BoxFuture;
use harness_core::tool::{SchemaValidator, ShallowSchemas};
use harness_core::{Cancel, Json, Millis};
use harness_flow::{Execution, ExecutionSpec, Flow, FlowError, Loop, Parallel, SpawnSpec, Step, StepCx};
use harness_host::{
    MemoryWorkspace, Params, ParamsFault, Precondition, Process, ProcessFault, ProcessOptions, ProcessOutput,
    RootCwd, Shell, Subprocess, Workplace, WorkspaceFile,
};
use parking_lot::Mutex;

use crate::stage::{Stage, text};

/// Programs that only note what is done with them. What is named `hang` runs until it is stopped.
#[derive(Clone, Debug, Default)]
struct Noted(Arc<Mutex<String>>);

impl Noted {
    fn note(&self, what: &str) {
        let mut noted = self.0.lock();
        let gap = if noted.is_empty() { "" } else { " | " };
        write!(noted, "{gap}{what}").unwrap();
    }

    fn take(&self) -> String {
        std::mem::take(&mut self.0.lock())
    }

    fn place(&self) -> Workplace {
        Workplace::in_memory().with_shell(Arc::new(self.clone())).with_subprocess(Arc::new(self.clone()))
    }
}

fn cancelled(program: &str) -> ProcessFault {
    ProcessFault::Cancelled { program: program.to_owned(), output: Box::default() }
}

/// Notes that a program is gone, however it went.
struct Gone<'a>(&'a Noted);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.note("gone");
    }
}

impl Shell for Noted {
    async fn exec(
        &self,
        command: &str,
        options: &ProcessOptions,
        cancel: &Cancel,
    ) -> Result<ProcessOutput, ProcessFault> {
        self.note(&format!("{}$ {command}", options.cwd.as_deref().unwrap_or("?")));
        if command == "hang" {
            let _gone = Gone(self);
            cancel.cancelled().await;
            return Err(cancelled("sh"));
        }
        Ok(ProcessOutput::new(Some(0), command, ""))
    }
}

/// A process that runs until it is stopped.
#[derive(Debug)]
struct Hanging(Cancel);

impl Process for Hanging {
    fn wait(&self) -> BoxFuture<'_, Result<ProcessOutput, ProcessFault>> {
        Box::pin(async {
            self.0.cancelled().await;
            Err(cancelled("hang"))
        })
    }

    fn result(&self) -> Option<Result<ProcessOutput, ProcessFault>> {
        self.0.is_cancelled().then(|| Err(cancelled("hang")))
    }

    fn printed(&self) -> String {
        String::new()
    }

    fn kill(&self) {
        self.0.cancel();
    }
}

impl Subprocess for Noted {
    async fn spawn(
        &self,
        program: &str,
        args: &[String],
        options: &ProcessOptions,
        cancel: &Cancel,
    ) -> Result<Box<dyn Process>, ProcessFault> {
        self.note(&format!("{}& {program} {}", options.cwd.as_deref().unwrap_or("?"), args.join(" ")));
        Ok(Box::new(Hanging(cancel.child())))
    }
}

/// A step that runs a command line and gives what it printed.
fn exec(command: &'static str) -> Step {
    Step::run(command, move |_: Json, cx: StepCx| async move {
        cx.exec(command, &ProcessOptions::new()).await.map(|ended| ended.stdout)
    })
}

/// A step that changes its working folder.
fn cd(folder: &'static str) -> Step {
    Step::run("cd", move |input: Json, cx: StepCx| {
        cx.set_cwd(folder);
        async { Ok::<_, String>(input) }
    })
}

fn folders(cx: &StepCx) -> String {
    format!("{} < {}", cx.cwd(), cx.previous_cwd().as_deref().unwrap_or("-"))
}

/// A step that gives its working folder and the one before.
fn pwd() -> Step {
    Step::run("pwd", |_: Json, cx: StepCx| async move { Ok::<_, String>(folders(&cx)) })
}

#[track_caller]
fn run(stage: &Stage, execution: &Execution, root: impl Into<Step>) -> Result<Json, FlowError> {
    let flow = Flow::new(root).expect("a flow");
    stage.drive(execution.run(&flow, Json::null()))
}

#[test]
fn without_a_workplace_nothing_outside_of_memory_is_touched() {
    let stage = Stage::new();
    let runner = stage.runner();
    let write = Step::run("write", |_: Json, cx: StepCx| async move {
        cx.fs().write_boxed("/a.md", "kept", &Precondition::Absent).await
    });
    let read = Step::run("read", |_: Json, cx: StepCx| async move {
        let file = cx.fs().read_boxed("/a.md").await.map_err(|fault| fault.to_string())?;
        Ok::<_, String>(file.map(|file| file.content))
    });
    run(&stage, &runner.start(ExecutionSpec::new("a")), write).expect("it is written");
    assert_eq!(run(&stage, &runner.start(ExecutionSpec::new("b")), read), Ok(text("kept")));

    let shell = Step::run("shell", |_: Json, cx: StepCx| async move {
        let ended = cx.exec("ls", &ProcessOptions::new()).await.map_err(|fault| fault.to_string())?;
        Ok::<_, String>(format!("{:?} {:?} {}", ended.exit_code, ended.stdout, ended.stderr))
    });
    insta::assert_snapshot!(stage.run(shell, Json::null()), @r#""Some(127) \"\" no command is executed here: this workplace has no shell, give it one by `with_shell`\n""#);
    let spawn = Step::run("spawn", |_: Json, cx: StepCx| async move {
        cx.start("make", &[], &ProcessOptions::new()).await.map(drop)
    });
    insta::assert_snapshot!(stage.run(spawn, Json::null()), @"step `spawn` failed: `make` is not run here: this workplace starts no processes, give it some by `with_subprocess`");
}

#[test]
fn children_work_where_their_parents_do_unless_a_spawn_says_otherwise() {
    let stage = Stage::new();
    let (host, own, childs) = (Noted::default(), Noted::default(), Noted::default());
    let runner = stage.runner_with(|runner| runner.workplace = host.place());
    let root = || {
        let (shell, cwd) = (Some(Arc::new(childs.clone()) as _), Some("/child".into()));
        let elsewhere = SpawnSpec { shell, cwd, ..SpawnSpec::default() };
        let inside = Step::spawn("inside", exec("c"));
        let steps = [exec("a"), Step::spawn("same", exec("b")), Step::spawn_with("other", inside, elsewhere)];
        Parallel::all("all", steps).concurrency(1)
    };
    run(&stage, &runner.start(ExecutionSpec::new("x")), root()).expect("an output");
    assert_eq!(
        (host.take(), own.take(), childs.take()),
        ("/$ a | /$ b".into(), String::new(), "/child$ c".into())
    );

    let mut spec = ExecutionSpec::new("y");
    (spec.workplace, spec.cwd) = (Some(own.place()), Some("/own".into()));
    run(&stage, &runner.start(spec), root()).expect("an output");
    assert_eq!(
        (host.take(), own.take(), childs.take()),
        (String::new(), "/own$ a | /own$ b".into(), "/child$ c".into())
    );
}

#[test]
fn a_spawn_and_detached_work_can_have_each_port_of_their_own() {
    let stage = Stage::new();
    let (host, childs) = (Noted::default(), Noted::default());
    let files = Arc::new(MemoryWorkspace::new([WorkspaceFile::text("/own.md", "")]));
    let look = Step::run("look", |_: Json, cx: StepCx| async move {
        let process = cx.start("serve", &["-v".into()], &ProcessOptions::new().cwd("/given")).await;
        process.map_err(|fault| fault.to_string())?;
        cx.exec("ls", &ProcessOptions::new()).await.map_err(|fault| fault.to_string())?;
        let own = cx.fs().read_boxed("/own.md").await.map_err(|fault| fault.to_string())?;
        Ok::<_, String>(own.is_some())
    });
    let (fs, subprocess) = (Some(files as _), Some(Arc::new(childs.clone()) as _));
    let mut spec = SpawnSpec { fs, subprocess, ..SpawnSpec::default() };
    let step = Step::spawn_with("other", look.clone(), spec.clone());
    assert_eq!(
        stage.run_with(stage.runner_with(|runner| runner.workplace = host.place()), step, Json::null()),
        "true"
    );
    assert_eq!((host.take(), childs.take()), ("/$ ls".into(), "/given& serve -v".into()));

    let execution =
        stage.runner_with(|runner| runner.workplace = host.place()).start(ExecutionSpec::new("x"));
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
        spec.cwd = Some("/beside".into());
        let detached = execution.cx().detach_with(&look, Json::null(), &spec).expect("it starts");
        assert_eq!(detached.wait(None).await, Ok(Json::parse("true").unwrap()));
    });
    assert_eq!((host.take(), childs.take()), ("/beside$ ls".into(), "/given& serve -v".into()));
}

#[test]
fn what_a_step_runs_ends_when_the_step_is_aborted() {
    let stage = Stage::new();
    let host = Noted::default();
    let start = || stage.runner_with(|runner| runner.workplace = host.place()).start(ExecutionSpec::new("x"));

    let execution = start();
    let flow = Flow::new(exec("hang")).expect("a flow");
    let mut done = None;
    stage.drive_with(async { done = Some(execution.run(&flow, Json::null()).await) }, |turn| {
        if turn == 3 {
            execution.abort("enough");
        }
    });
    assert_eq!(done, Some(Err(FlowError::Cancelled { reason: "enough".into() })));
    assert_eq!(host.take(), "/$ hang | gone");

    let late = run(&stage, &start(), exec("hang").timeout(Millis(5))).unwrap_err();
    assert_eq!(late.to_string(), "step `hang` failed: timeout of 5 ms exceeded");
    assert_eq!(host.take(), "/$ hang | gone");

    run(&stage, &start(), Parallel::race("race", [exec("hang"), exec("quick")])).expect("a winner");
    assert_eq!(host.take(), "/$ hang | /$ quick | gone");
}

#[test]
fn a_process_outlives_its_step_but_not_the_abort_of_its_execution() {
    let stage = Stage::new();
    let host = Noted::default();
    let execution =
        stage.runner_with(|runner| runner.workplace = host.place()).start(ExecutionSpec::new("x"));
    let kept = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&kept);
    let start = Step::run("start", move |_: Json, cx: StepCx| {
        let keep = Arc::clone(&keep);
        async move {
            let process = cx.start("serve", &[], &ProcessOptions::new()).await?;
            *keep.lock() = Some(process);
            Ok::<_, ProcessFault>(())
        }
    });
    run(&stage, &execution, start).expect("it is started");
    let process = kept.lock().take().expect("a process");
    assert_eq!(process.result(), None);
    execution.abort("enough");
    assert_eq!(stage.drive(process.wait()).unwrap_err().kind(), "cancelled");
}

#[test]
fn all_root_executions_share_the_root_folder_and_children_have_copies() {
    let stage = Stage::new();
    let runner = stage.runner();
    let (a, b) = (runner.start(ExecutionSpec::new("a")), runner.start(ExecutionSpec::new("b")));
    assert!(runner.root_cwd.set("/one") && !runner.root_cwd.set("/one"));
    assert_eq!((folders(a.cx()), folders(b.cx())), ("/one < /".into(), "/one < /".into()));

    run(&stage, &a, cd("/two")).expect("an output");
    assert_eq!(
        (folders(b.cx()), runner.root_cwd.previous().as_deref()),
        ("/two < /one".into(), Some("/one"))
    );

    let child = Loop::sequence("child", [pwd(), cd("/child"), pwd()]);
    let output = run(&stage, &a, Step::spawn("spawn", child.into()));
    assert_eq!((output, folders(a.cx())), (Ok(text("/child < /two")), "/two < /one".into()));

    let mut spec = ExecutionSpec::new("c");
    spec.cwd = Some("/own".into());
    let own = runner.start(spec);
    run(&stage, &own, cd("/two")).expect("an output");
    assert_eq!((folders(own.cx()), folders(a.cx())), ("/two < /own".into(), "/two < /one".into()));
}

#[test]
fn paths_have_copies_of_the_folder_and_a_race_takes_that_of_its_winner() {
    let stage = Stage::new();
    let execution =
        stage.runner_with(|runner| runner.root_cwd = RootCwd::new("/start")).start(ExecutionSpec::new("x"));
    let moved = |folder| Step::from(Loop::sequence("moved", [cd(folder), pwd()]));
    let both = run(&stage, &execution, Parallel::all("all", [moved("/a"), moved("/b")]));
    assert_eq!(both.unwrap().text(), r#"["/a < /start","/b < /start"]"#);
    assert_eq!(folders(execution.cx()), "/start < -");
    run(&stage, &execution, Parallel::race("race", [moved("/c")])).expect("a winner");
    assert_eq!(folders(execution.cx()), "/c < /start");
    run(&stage, &execution, Parallel::race("still", [pwd()])).expect("a winner");
    assert_eq!(folders(execution.cx()), "/c < /start");
}

#[derive(serde::Deserialize, Debug, PartialEq)]
struct Settings {
    region: String,
    most: u32,
}

fn json(text: &str) -> Json {
    Json::parse(text).expect("JSON")
}

#[test]
fn steps_and_their_children_read_the_params() {
    let stage = Stage::new();
    let read = Step::run("read", |_: Json, cx: StepCx| async move {
        let settings: Settings = cx.params_as()?;
        Ok::<_, ParamsFault>(format!("{}: {} {}", cx.params().text(), settings.region, settings.most))
    });
    let with = |params: &str| stage.runner_with(|runner| runner.params = Params::new(json(params)));
    let child = || Step::spawn("child", read.clone());
    let given = stage.run_with(with(r#"{"region":"eu","most":3}"#), child(), Json::null());
    assert_eq!(given, text(r#"{"region":"eu","most":3}: eu 3"#).text());
    let wrong = stage.run_with(with(r#"{"region":"eu","most":"three"}"#), child(), Json::null());
    assert!(wrong.contains("Settings`: `most`: invalid type: string \"three\", expected u32"), "{wrong}");
    let none = stage.run(read.clone(), Json::null());
    assert!(none.contains("Settings`: missing field `region`"), "{none}");
}

#[test]
fn params_that_do_not_fit_are_refused_at_once() {
    /// Wants an `n` above zero.
    struct Above;
    impl SchemaValidator for Above {
        fn check(&self, _: &serde_json::Value, data: &serde_json::Value) -> Result<(), String> {
            let n = data.get("n").and_then(serde_json::Value::as_i64).unwrap_or_default();
            if n > 0 { Ok(()) } else { Err(format!("`n`: expected more than 0, found {n}")) }
        }
    }
    let schema = json(r#"{"type":"object","required":["n"]}"#);
    let checked = |params: &str, by: &dyn SchemaValidator| match Params::checked(json(params), &schema, by) {
        Ok(params) => params.json().to_string(),
        Err(fault) => format!("{}: {fault}", fault.kind()),
    };
    assert_eq!(checked(r#"{"n":1}"#, &Above), r#"{"n":1}"#);
    assert_eq!(
        checked(r#"{"n":-2}"#, &Above),
        "params_schema: the params do not fit their schema: `n`: expected more than 0, found -2"
    );
    assert_eq!(
        checked("[]", &ShallowSchemas),
        "params_schema: the params do not fit their schema: expected object"
    );
    let fault = Params::of::<Vec<Settings>>(json(r#"[{"region":"eu","most":-1}]"#)).unwrap_err();
    let told = fault.to_string();
    assert!(told.contains("Settings>`: `[0].most`: invalid value: integer `-1`"), "{told}");
    assert_eq!(fault.kind(), "params_form");
}

#[test]
fn a_child_may_work_in_another_thread_and_for_another_owner() {
    let stage = Stage::new();
    let whose = Step::run("whose", async |(): (), cx: StepCx| {
        let named = |name: Option<&str>| name.unwrap_or("nobody").to_owned();
        Ok::<_, String>(format!(
            "{} {}",
            named(cx.thread().map(harness_core::ThreadId::as_str)),
            named(cx.resource().map(|owner| &**owner))
        ))
    });
    let mut beginning = ExecutionSpec::new("x");
    (beginning.thread, beginning.resource) = (Some("t".into()), Some("r".into()));
    let execution = stage.runner_with(|_| {}).start(beginning);
    let detach = |spec: &SpawnSpec| execution.cx().detach_with(&whose, Json::null(), spec);
    let outside = detach(&SpawnSpec::default()).unwrap_err();
    assert!(outside.to_string().contains("needs a tokio runtime"), "{outside}");
    let wait = |spec: SpawnSpec| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { detach(&spec).expect("it starts").wait(None).await })
    };
    let check = |spec, expected| assert_eq!(wait(spec), Ok(Json::string(expected)));
    check(SpawnSpec::default(), "t r");
    check(SpawnSpec { thread: Some("other".into()), ..SpawnSpec::default() }, "other r");
    check(SpawnSpec { resource: Some("them".into()), ..SpawnSpec::default() }, "t them");
    let both = Step::spawn_with(
        "child",
        whose.clone(),
        SpawnSpec { thread: Some("other".into()), resource: Some("them".into()), ..SpawnSpec::default() },
    );
    assert_eq!(run(&stage, &execution, both), Ok(Json::string("other them")));
    assert_eq!(run(&stage, &execution, whose.clone()), Ok(Json::string("t r")));
}
