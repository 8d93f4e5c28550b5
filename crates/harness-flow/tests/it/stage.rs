//! Where flows are tried: virtual time that passes whenever nothing else happens.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use harness_core::driver::Ports;
use harness_core::port::Clock as _;
use harness_core::testing::{ScriptedModel, VirtualClock};
use harness_core::{Json, Millis, Time};
use harness_flow::{ExecutionSpec, Flow, FlowRunner, Step, TurnAgent};

/// Turns without an end after which a test has failed.
const TURNS: u32 = 100_000;

pub(crate) struct Stage {
    pub(crate) clock: VirtualClock,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self { clock: VirtualClock::still(Time(0)) }
    }

    pub(crate) fn now(&self) -> i64 {
        self.clock.now().0
    }

    pub(crate) fn runner(&self) -> FlowRunner {
        FlowRunner::new(Arc::new(self.clock.clone()))
    }

    /// A runner with settings other than the defaults.
    pub(crate) fn runner_with(&self, set: impl FnOnce(&mut FlowRunner)) -> FlowRunner {
        let mut runner = self.runner();
        set(&mut runner);
        runner
    }

    pub(crate) fn agent(&self, model: &ScriptedModel) -> Arc<TurnAgent> {
        let (model, clock) = (Arc::new(model.clone()), Arc::new(self.clock.clone()));
        Arc::new(TurnAgent::new(move || Ports::new(model.clone(), clock.clone())))
    }

    /// The output of a flow, or its error, as a text.
    #[track_caller]
    pub(crate) fn run(&self, root: impl Into<Step>, input: Json) -> String {
        self.run_with(self.runner(), root, input)
    }

    #[track_caller]
    pub(crate) fn run_with(&self, runner: FlowRunner, root: impl Into<Step>, input: Json) -> String {
        let flow = Flow::new(root).expect("a flow");
        let execution = runner.start(ExecutionSpec::new("x"));
        match self.drive(execution.run(&flow, input)) {
            Ok(output) => output.to_string(),
            Err(error) => error.to_string(),
        }
    }

    /// Polls to the end; time passes by a millisecond whenever nothing is ready.
    #[track_caller]
    pub(crate) fn drive<T>(&self, work: impl Future<Output = T>) -> T {
        self.drive_with(work, |_| {})
    }

    /// The same, with something that happens before each turn, counted from 1.
    #[track_caller]
    pub(crate) fn drive_with<T>(&self, work: impl Future<Output = T>, mut before: impl FnMut(u32)) -> T {
        let mut work = pin!(work);
        for turn in 1..TURNS {
            before(turn);
            if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return done;
            }
            self.clock.advance(Millis(1));
        }
        unreachable!("the work has no end")
    }
}

pub(crate) fn text(text: &str) -> Json {
    Json::string(text)
}
