//! Errors before the start of a run.

use harness_control::ControlFault;
use harness_core::turn::SpecFault;
use harness_descriptor::DescriptorError;
use harness_memory::MemoryError;
use harness_runtime::RuntimeError;

/// Error of building a harness or starting a run.
///
/// The end of a run is never an error: see the [`End`](harness_core::End) of its [`Report`](harness_runtime::Report).
///
/// ```
/// use harness::HarnessError;
/// use harness::runtime::RuntimeError;
///
/// let error = HarnessError::from(RuntimeError::NoCheckpoints);
/// assert_eq!(error.kind(), "runtime.no_checkpoints");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HarnessError {
    /// The builder was given things that do not fit together. All of them.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Setup(Vec<SetupFault>),
    /// A descriptor, or its context, is invalid.
    #[error(transparent)]
    Descriptor(#[from] DescriptorError),
    /// Two tools of a graph have the name by which a model calls them in common.
    #[error("the targets `{}` and `{}` are both bound to a tool named `{name}`", targets[0], targets[1])]
    SameName {
        /// Name of the tool.
        name: String,
        /// Targets that are bound to it.
        targets: [String; 2],
    },
    /// The memory of a registry file cannot be built: a file, a directory or a layer is unusable.
    #[error("memory: {0}")]
    Memory(#[from] MemoryError),
    /// A run could not be started, or a thread not do what it was asked to.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl HarnessError {
    /// A stable code.
    pub fn kind(&self) -> &str {
        match self {
            Self::Setup(_) => "harness.setup",
            Self::Descriptor(error) => error.kind(),
            Self::SameName { .. } => "harness.same_tool_name",
            Self::Memory(error) => error.kind(),
            Self::Runtime(error) => error.kind(),
        }
    }
}

/// One problem of a setup.
///
/// ```
/// use harness::prelude::*;
/// use harness::{HarnessError, SetupFault};
/// # struct Hosted;
/// # impl Model for Hosted {
/// #     async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
/// #         Ok(AssistantMessage::text("hi"))
/// #     }
/// # }
///
/// // A runtime has many conversations, and a session belongs to one.
/// let builder = Harness::new(Hosted).session(harness::session::MemorySession::new());
/// let Err(HarnessError::Setup(faults)) = builder.build_runtime() else { unreachable!() };
/// assert_eq!(faults, [SetupFault::OfOneConversation { part: "session" }]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupFault {
    /// Agents were given twice.
    #[error("`agents`, `graph` and `instructions` exclude each other: {given} of them were given")]
    AgentsTwice {
        /// How many of them.
        given: usize,
    },
    /// Tools were given one by one, and a registry, too.
    #[error("`tool` and `registry` exclude each other: a registry lists all tools itself")]
    ToolsTwice,
    /// A part of a single conversation, for a runtime of many.
    #[error("`{part}` belongs to one conversation, and a runtime has many: leave it out")]
    OfOneConversation {
        /// The builder's method.
        part: &'static str,
    },
    /// Two tools have one name.
    #[error("two tools are named `{name}`: a model could call only one of them")]
    SameTool {
        /// Name of the tool.
        name: String,
    },
    /// A setting of the turn is out of its range.
    #[error(transparent)]
    Spec(#[from] SpecFault),
    /// The output schema of an agent is invalid.
    #[error("invalid `output` of agent `{agent}`: {problem}")]
    Output {
        /// Id of the agent.
        agent: String,
        /// Problem of the schema.
        problem: String,
    },
    /// A setting of what controls a run.
    #[error(transparent)]
    Control(#[from] ControlFault),
    /// The tool of the completion signal is missing.
    #[error("the completion signal is the tool `{name}`, which was not given")]
    NoSignal {
        /// Name of the tool.
        name: String,
    },
    /// A contract names a missing check; a strict run could never complete.
    #[error(
        "required output `{output}` names the check `{name}`, which was not given; give it with `contract_check`"
    )]
    NoCheck {
        /// The required output.
        output: String,
        /// Name of the check.
        name: String,
    },
}
