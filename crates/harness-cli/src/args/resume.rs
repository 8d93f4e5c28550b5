//! The arguments of `harness resume`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{
    ApprovalArgs, BackendArgs, ContextArg, LimitArgs, MessageArg, ModelArgs, RunArgs, SpanArgs, UntilArgs,
    ViewArgs,
};
use crate::exit::Exit;

#[derive(Debug, Args)]
#[command(after_help = Exit::help())]
pub(crate) struct ResumeArgs {
    /// The session file; it knows its descriptor, and what was to be done
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) session: PathBuf,

    /// Something to say to the run, such as what to do differently
    pub(crate) message: Option<MessageArg>,

    /// Descriptor file, or a directory with a `harness.yaml` [default: the descriptor that the session records]
    #[arg(long, value_name = "DESCRIPTOR", value_hint = ValueHint::AnyPath)]
    pub(crate) descriptor: Option<PathBuf>,

    /// What the descriptor's tool targets are [default: as in the run before]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) registry: Option<PathBuf>,

    /// Go on although the descriptor has changed since the session was begun
    #[arg(long)]
    pub(crate) allow_changed: bool,

    /// A value of the descriptor's context (customer.premium=true), or a YAML or JSON file of them;
    /// may be repeated
    #[arg(long, value_name = "KEY=VALUE|FILE")]
    pub(crate) context: Vec<ContextArg>,

    #[command(flatten)]
    pub(crate) approvals: ApprovalArgs,

    /// Write the record of the run to this file, for `harness inspect`, `replay` and `regress`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) run_record: Option<PathBuf>,

    /// One event per line on standard output, the last line is the result
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) model: ModelArgs,

    #[command(flatten)]
    pub(crate) backend: BackendArgs,

    #[command(flatten)]
    pub(crate) until: UntilArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    #[command(flatten)]
    pub(crate) view: ViewArgs,

    #[command(flatten)]
    pub(crate) spans: SpanArgs,
}

impl ResumeArgs {
    /// The arguments of the run to resume.
    pub(crate) fn run(&self, registry: Option<PathBuf>, until: UntilArgs) -> RunArgs {
        RunArgs {
            descriptor: self.descriptor.clone(),
            message: self.message.clone(),
            registry: self.registry.clone().or(registry),
            session: Some(self.session.clone()),
            resume: true,
            allow_changed: self.allow_changed,
            context: self.context.clone(),
            approvals: self.approvals.clone(),
            run_record: self.run_record.clone(),
            json: self.json,
            model: self.model.clone(),
            backend: self.backend.clone(),
            until,
            limits: self.limits.clone(),
            view: self.view.clone(),
            spans: self.spans.clone(),
        }
    }
}
