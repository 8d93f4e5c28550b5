//! Flows whose steps run programs of this machine.
//!
//! A program tells through a fifo that it is up, and everything that it started holds the fifo open. So the end
//! of the fifo is reached when, and only when, all of it is gone.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use harness::core::Json;
use harness::flow::{ExecutionSpec, Flow, FlowError, FlowRunner, Step, StepCx};
use harness::host::process::Environment;
use harness::host::{ProcessFault, ProcessOptions, RootCwd, Workplace};
use harness::system::SystemClock;
use harness::tools::{FolderWorkspace, SystemPrograms};
use parking_lot::Mutex;

/// Longer than any program of these tests takes on a busy machine; only a failing test waits for it.
const LONG: Duration = Duration::from_mins(1);

/// Says on a fifo that it is up, and hangs with a child that hangs, too.
const HANGS: &str = "exec 3>fifo; sleep 1000 & echo up >&3; wait";

/// A host whose steps work in a folder, in which the folder `in` is where they begin.
fn host(folder: &Path) -> FlowRunner {
    std::fs::create_dir(folder.join("in")).unwrap();
    let surroundings = Environment::from_iter([("PATH", "/usr/local/bin:/usr/bin:/bin")]);
    let programs = Arc::new(SystemPrograms::new(folder).env_from(&surroundings));
    let place = Workplace::in_memory()
        .with_fs(Arc::new(FolderWorkspace::open(folder).unwrap()))
        .with_shell(programs.clone())
        .with_subprocess(programs);
    let mut runner = FlowRunner::new(Arc::new(SystemClock::new()));
    (runner.workplace, runner.root_cwd) = (place, RootCwd::new("/in"));
    runner
}

async fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::time::timeout(LONG, tokio::task::spawn_blocking(work)).await.unwrap().unwrap()
}

fn options() -> ProcessOptions {
    ProcessOptions::new().timeout(harness::core::Millis::from(LONG))
}

#[tokio::test]
async fn files_and_programs_of_a_step_are_those_of_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("other")).unwrap();
    let runner = host(folder.path());
    let write = Step::run("write", |_: Json, cx: StepCx| async move {
        cx.set_cwd("/other");
        let ended = cx.exec("echo made > a.txt; basename $PWD", &options()).await;
        let folder = ended.map_err(|fault| fault.to_string())?.stdout;
        let file = cx.fs().read_boxed("/other/a.txt").await.map_err(|fault| fault.to_string())?;
        Ok::<_, String>(folder + &file.map(|file| file.content).unwrap_or_default())
    });
    let execution = runner.start(ExecutionSpec::new("x"));
    let output = execution.run(&Flow::new(write).unwrap(), Json::null()).await;
    assert_eq!(output, Ok(Json::string("other\nmade\n")));
    assert_eq!((&*runner.root_cwd.get(), runner.root_cwd.previous().as_deref()), ("/other", Some("/in")));
}

/// Runs a step that starts what hangs, aborts the execution when it is up, and waits until all of it is gone.
async fn aborted(step: impl FnOnce() -> Step) -> Result<Json, FlowError> {
    let folder = tempfile::tempdir().unwrap();
    let execution = Arc::new(host(folder.path()).start(ExecutionSpec::new("x")));
    execution.cx().exec("mkfifo fifo", &options()).await.unwrap();
    let flow = Flow::new(step()).unwrap();
    let running = tokio::spawn({
        let execution = Arc::clone(&execution);
        async move { execution.run(&flow, Json::null()).await }
    });
    let path = folder.path().join("in/fifo");
    let mut fifo = in_time(move || {
        let mut reader = BufReader::new(File::open(path).unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, "up\n");
        reader
    })
    .await;
    execution.abort("enough");
    in_time(move || assert_eq!(fifo.read_to_end(&mut Vec::new()).unwrap(), 0)).await;
    running.await.unwrap()
}

#[tokio::test]
async fn an_aborted_step_leaves_no_program_behind() {
    let exec = || {
        Step::run("exec", |_: Json, cx: StepCx| async move {
            cx.exec(HANGS, &options()).await.map(|ended| ended.stdout)
        })
    };
    assert_eq!(aborted(exec).await, Err(FlowError::Cancelled { reason: "enough".into() }));
}

#[tokio::test]
async fn a_process_whose_handle_somebody_keeps_ends_with_its_execution() {
    let kept = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&kept);
    let spawn = move || {
        Step::run("spawn", move |_: Json, cx: StepCx| {
            let keep = Arc::clone(&keep);
            async move {
                let args = ["-c".to_owned(), HANGS.to_owned()];
                let process = cx.start("sh", &args, &options()).await?;
                *keep.lock() = Some(process);
                Ok::<_, ProcessFault>(())
            }
        })
    };
    assert_eq!(aborted(spawn).await, Ok(Json::null()));
    let process = kept.lock().take().unwrap();
    assert_eq!(process.wait().await.unwrap_err().kind(), "cancelled");
}
