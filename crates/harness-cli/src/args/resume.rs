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
    /// Session, which records its descriptor and options: a file, or a thread of a database (chats.db#NAME)
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) session: PathBuf,

    /// Message to send, such as guidance
    pub(crate) message: Option<MessageArg>,

    /// Descriptor file, or a directory with a `harness.yaml` [default: the descriptor that the session records]
    #[arg(long, value_name = "DESCRIPTOR", value_hint = ValueHint::AnyPath)]
    pub(crate) descriptor: Option<PathBuf>,

    /// Bind tools with this registry file [default: that of the run]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) registry: Option<PathBuf>,

    /// Resume even if the descriptor has changed
    #[arg(long)]
    pub(crate) allow_changed: bool,

    /// Set a context value (customer.premium=true), or load values from a YAML or JSON file
    /// (repeatable)
    #[arg(long, value_name = "KEY=VALUE|FILE")]
    pub(crate) context: Vec<ContextArg>,

    /// Require an answer that matches the JSON Schema in this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output_schema: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) approvals: ApprovalArgs,

    /// Write the run record to this file, for `harness inspect`, `replay` and `regress`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) run_record: Option<PathBuf>,

    /// Print one JSON event per line, and the result as the last line
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
    /// Arguments of the run to resume.
    pub(crate) fn run(&self, registry: Option<PathBuf>, until: UntilArgs) -> RunArgs {
        RunArgs {
            descriptor: self.descriptor.clone(),
            message: self.message.clone(),
            registry: self.registry.clone().or(registry),
            session: Some(self.session.clone()),
            resume: true,
            allow_changed: self.allow_changed,
            context: self.context.clone(),
            output_schema: self.output_schema.clone(),
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
