//! A backend that is a program of this machine.

use std::sync::Arc;
use std::time::Duration;

use harness_core::port::Clock;
use harness_core::redact::KnownSecrets;
use harness_host::process::{Capture, Ended, Ending, Line, Lines};
use tokio::sync::Notify;

use super::ended::{Exit, Report, not_started};
use super::output::{Kind, OutputFormat, OutputReader, ParsedOutput, Reading};
use super::program::{Invocation, LocalProgram};
use super::secret::secrets_of;
use crate::execution::{
    Attempt, ExecutionAdapter, ExecutionCapabilities, ExecutionCx, ExecutionError, ExecutionErrorCode,
    ExecutionNegotiation, ExecutionPart, ExecutionRequest, ExecutionResult, ExecutionSink, Negotiated,
    NegotiationReason,
};

/// Maximum line of a program's output, in bytes: 8 MiB. A longer one is reported as a note.
pub const MAX_LINE: usize = 8 * 1024 * 1024;

type Build = dyn Fn(&ExecutionRequest) -> Result<Invocation, ExecutionError> + Send + Sync;
type Retry = dyn Fn(Exit) -> bool + Send + Sync;
type Reasons = dyn Fn(&ExecutionRequest) -> Vec<NegotiationReason> + Send + Sync;

/// A backend that runs a program for each request.
///
/// The invocation is made from the request, and an [`OutputFormat`] reads the output. Every failure
/// is returned as a result:
///
/// | what happened | status, code | retryable |
/// |---|---|---|
/// | it exits with code 0 and its output is an answer | completed | |
/// | its output says that it failed | failed, the output's own code | as the output says |
/// | it exits with code 0 and its output is not an answer | failed, `invalid_backend_output` | not said |
/// | it exits otherwise | failed, `backend_execution_error` | [`retryable_exit`](Self::retryable_exit) |
/// | it cannot be started | failed, `backend_execution_error` | no |
/// | it is stopped at its time limit | failed, `timeout` | yes |
/// | it prints more than 128 MiB and is stopped | failed, `backend_execution_error` | no |
/// | it is cancelled and stopped | failed, `other` | no |
///
/// A failed result carries what there is of an answer. stdin is closed behind what is written to it, children
/// that the program leaves behind end with it, and values of variables whose names say that they are secrets
/// (`…_KEY`, `…_TOKEN`) are taken out of everything that it prints. Dropping the future of
/// [`execute`](ExecutionAdapter::execute) kills the program and all that it started.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_adapters::execution::{
///     ExecutionAdapter, ExecutionCapabilities, ExecutionCx, ExecutionMessage, ExecutionRequest,
/// };
/// use harness_adapters::local::{Invocation, LocalCommandAdapter, LocalProgram, OutputFormat};
/// use harness_host::process::{Environment, ProgramSpec};
/// use harness_core::Cancel;
/// use harness_core::port::Clock;
///
/// # async fn example(clock: Arc<dyn Clock>) {
/// let surroundings = Environment::of_process();
/// let adapter = LocalCommandAdapter::new(
///     "upper",
///     LocalProgram::new(ProgramSpec::new("tr").pass(&surroundings, [])),
///     |request| Ok(Invocation::new(["a-z", "A-Z"]).stdin(request.message.text.clone())),
///     OutputFormat::plain_text(),
///     ExecutionCapabilities::none(),
///     clock,
/// );
/// let request = ExecutionRequest::new("a", "t1", "", ExecutionMessage::new("m1", "hello"));
/// let result = adapter.execute(request, ExecutionCx::new(&(), &Cancel::never())).await;
/// assert_eq!(result.text(), "HELLO");
/// # }
/// ```
#[derive(Clone, derive_more::Debug)]
pub struct LocalCommandAdapter {
    backend_id: String,
    label: String,
    program: LocalProgram,
    #[debug(skip)]
    build: Arc<Build>,
    format: OutputFormat,
    #[debug(skip)]
    capabilities: ExecutionCapabilities,
    #[debug(skip)]
    clock: Arc<dyn Clock>,
    #[debug(skip)]
    retry: Arc<Retry>,
    #[debug(skip)]
    reasons: Option<Arc<Reasons>>,
    #[debug(skip)]
    what_to_do: Option<String>,
}

impl LocalCommandAdapter {
    /// A backend with the defaults of its builder methods.
    pub fn new(
        backend_id: impl Into<String>,
        program: LocalProgram,
        build: impl Fn(&ExecutionRequest) -> Result<Invocation, ExecutionError> + Send + Sync + 'static,
        format: OutputFormat,
        capabilities: ExecutionCapabilities,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let backend_id = backend_id.into();
        Self {
            label: format!("{backend_id} command"),
            backend_id,
            program,
            build: Arc::new(build),
            format,
            capabilities,
            clock,
            retry: Arc::new(|_| true),
            reasons: None,
            what_to_do: None,
        }
    }

    /// Called so in messages. Default `<backend id> command`.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// With a rule which exits, other than with code 0, may well not come again. Default: all.
    #[must_use]
    pub fn retryable_exit(mut self, rule: impl Fn(Exit) -> bool + Send + Sync + 'static) -> Self {
        self.retry = Arc::new(rule);
        self
    }

    /// With further reasons why a request is degraded or not supported, after those of
    /// [`ExecutionNegotiation::of`].
    #[must_use]
    pub(super) fn negotiating(
        mut self,
        reasons: impl Fn(&ExecutionRequest) -> Vec<NegotiationReason> + Send + Sync + 'static,
    ) -> Self {
        self.reasons = Some(Arc::new(reasons));
        self
    }

    /// With a word on what to do when the program cannot be started.
    #[must_use]
    pub fn when_missing(mut self, what_to_do: impl Into<String>) -> Self {
        self.what_to_do = Some(what_to_do.into());
        self
    }

    /// How the program is run.
    pub fn program(&self) -> &LocalProgram {
        &self.program
    }

    /// Builds the invocation for a request. Pure.
    ///
    /// # Errors
    /// The error that [`execute`](ExecutionAdapter::execute) would fail with.
    pub fn invocation(&self, request: &ExecutionRequest) -> Result<Invocation, ExecutionError> {
        (self.build)(request)
    }

    async fn run(
        &self,
        request: &ExecutionRequest,
        cx: ExecutionCx<'_>,
        attempt: Attempt<'_>,
    ) -> ExecutionResult {
        let invocation = match self.invocation(request) {
            Ok(invocation) => invocation,
            Err(error) => return attempt.tool_calls(0).failed(error, None),
        };
        if cx.cancel.is_cancelled() {
            let told = format!("{} was not started: the run was cancelled.", self.label);
            let error = ExecutionError::new(ExecutionErrorCode::Other, told).retryable(false);
            return attempt.tool_calls(0).failed(error, None);
        }
        let secrets = secrets_of(&self.program.spec.environment());
        let mut source = Source::open(&self.format, request, &secrets);
        let enough = Notify::new();
        let unwanted = async {
            tokio::select! {
                () = cx.cancel.cancelled() => {}
                () = enough.notified() => {}
            }
        };
        let ended = {
            let tap = |part: &[u8]| {
                if source.push(part, cx.sink) == Reading::Enough {
                    enough.notify_one();
                }
            };
            self.program.run(&invocation, self.program.limits.time, unwanted, tap).await
        };
        let report = Report { label: &self.label, retry: &*self.retry, timeout: self.program.limits.time };
        match ended {
            Err(error) => not_started(&self.why(&error), attempt),
            Ok(ended) => {
                let exited = matches!(ended.ending, Ending::Exited(status) if status.success());
                let parsed = source.finish(&ended.stdout, exited, cx.sink);
                report.ended(&hidden(ended, &secrets), parsed, attempt)
            }
        }
    }

    fn why(&self, error: &std::io::Error) -> String {
        let why = harness_host::process::why_not_started(&self.program.spec, error);
        let what_to_do = self.what_to_do.as_deref().filter(|_| error.kind() == std::io::ErrorKind::NotFound);
        let program = self.program.spec.name();
        match what_to_do {
            Some(what_to_do) => format!("`{program}` could not be started: {why}; {what_to_do}"),
            None => format!("`{program}` could not be started: {why}"),
        }
    }
}

impl ExecutionAdapter for LocalCommandAdapter {
    fn backend_id(&self) -> &str {
        &self.backend_id
    }

    fn capabilities(&self) -> ExecutionCapabilities {
        self.capabilities.clone()
    }

    fn negotiate(&self, request: &ExecutionRequest) -> ExecutionNegotiation {
        let negotiation = ExecutionNegotiation::of(request, &self.capabilities);
        let Some(more) = &self.reasons else { return negotiation };
        let mut reasons = negotiation.reasons;
        reasons.extend(more(request));
        ExecutionNegotiation::from_reasons(reasons, negotiation.effective_capabilities)
    }

    async fn execute(&self, request: ExecutionRequest, cx: ExecutionCx<'_>) -> ExecutionResult {
        let attempt = match Negotiated::of(self, &request) {
            Ok(negotiated) => negotiated.start(&*self.clock),
            Err(unsupported) => return *unsupported,
        };
        self.run(&request, cx, attempt).await
    }
}

/// Output of a program, redacted.
pub(super) struct Printed {
    pub(super) ending: Ending,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

fn hidden(ended: Ended, secrets: &KnownSecrets) -> Printed {
    Printed {
        ending: ended.ending,
        stdout: secrets.text(&ended.stdout.lossy()).into_owned(),
        stderr: secrets.text(&ended.stderr.lossy()).into_owned(),
    }
}

/// A program's output on its way to its meaning.
enum Source<'a> {
    Whole(&'a (dyn Fn(&str) -> Option<ParsedOutput> + Send + Sync), &'a KnownSecrets),
    Lines { reader: Box<dyn OutputReader>, lines: Lines, secrets: &'a KnownSecrets },
}

impl<'a> Source<'a> {
    fn open(format: &'a OutputFormat, request: &ExecutionRequest, secrets: &'a KnownSecrets) -> Self {
        match &format.0 {
            Kind::Whole(parse) => Self::Whole(&**parse, secrets),
            Kind::Lines(open) => Self::Lines { reader: open(request), lines: Lines::new(MAX_LINE), secrets },
        }
    }

    fn push(&mut self, part: &[u8], sink: &dyn ExecutionSink) -> Reading {
        let Self::Lines { reader, lines, secrets } = self else { return Reading::GoOn };
        let mut reading = Reading::GoOn;
        lines.push(part, &mut |line| {
            if read(reader.as_mut(), line, secrets, sink) == Reading::Enough {
                reading = Reading::Enough;
            }
        });
        reading
    }

    fn finish(self, stdout: &Capture, ended_well: bool, sink: &dyn ExecutionSink) -> Option<ParsedOutput> {
        match self {
            Self::Whole(parse, secrets) => parse(&secrets.text(&stdout.lossy())),
            Self::Lines { mut reader, lines, secrets } => {
                if let Some(line) = lines.rest() {
                    read(reader.as_mut(), line, secrets, sink);
                }
                reader.finish(ended_well)
            }
        }
    }
}

fn read(
    reader: &mut dyn OutputReader,
    line: Line<'_>,
    secrets: &KnownSecrets,
    sink: &dyn ExecutionSink,
) -> Reading {
    match line {
        Line::Whole(bytes) => reader.line(&secrets.text(&String::from_utf8_lossy(bytes)), sink),
        Line::Cut(_) => {
            sink.part(ExecutionPart::Note(format!("a line of more than {MAX_LINE} bytes was left out")));
            Reading::GoOn
        }
    }
}

/// How long a program may run, as messages write it.
pub(super) fn in_ms(span: Duration) -> String {
    format!("{}ms", span.as_millis())
}
