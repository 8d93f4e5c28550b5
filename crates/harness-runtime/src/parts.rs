//! The parts of a run, for a driver that is not a thread of this process.

use std::fmt;
use std::sync::{Arc, OnceLock};

use harness_core::driver::Ports;
use harness_core::port::{AgentConfig, AgentSource, Control, PrepareAsk, SessionError};
use harness_core::run::{PlainControl, RunSpec};
use harness_core::transcript::Prefix;
use harness_core::{Fault, Origin, ToolName};
use harness_host::{Params, RootCwd};

use crate::agent::ThreadAgents;
use crate::config::{ResolvedConfig, RunSetup};
use crate::error::RuntimeError;
use crate::model::ThreadModel;
use crate::prompt::MessageOptions;
use crate::queue::DeliveryRules;
use crate::runtime::Runtime;
use crate::thread::last_said;

/// The parts of one run: those that a thread of the runtime would use. Made by [`Runtime::run_parts`].
#[non_exhaustive]
pub struct RunParts {
    /// Agents, model, tools, gates, checks and the rest. Session, checkpoints and steering are those of the driver.
    pub ports: Ports,
    /// Limits and rules.
    pub spec: Arc<RunSpec>,
    /// Decides whether the run continues after a turn.
    pub control: Box<dyn Control>,
    /// How its thread delivers messages.
    pub delivery: DeliveryRules,
    /// The only tools of the run ([`ThreadConfig::active_tools`](crate::ThreadConfig::active_tools), and those that the message
    /// allows). Default all.
    pub allowed_tools: Option<Arc<[ToolName]>>,
}

impl fmt::Debug for RunParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunParts")
            .field("ports", &self.ports)
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

impl Runtime {
    /// Descriptor, user, workspace and other data of the runs of its threads, without ids.
    pub fn origin(&self) -> &Origin {
        &self.config().config.origin
    }

    /// Makes the parts of a run for another driver, such as a worker of a durable engine. `origin` names its thread, run and
    /// descriptor. Nothing of a thread of this runtime is read or changed. The mode of the run is a state that the other driver
    /// restores, see [`Stateful`](harness_core::port::Stateful).
    ///
    /// The context of the agents is created when the first agent is prepared, with the last message of a user. `options` are those
    /// of the message that started the run: the context, the output schema, the layers and the allowed tools count, the rest is in
    /// `origin`.
    ///
    /// ```
    /// use harness_core::Origin;
    /// use harness_runtime::{MessageOptions, Runtime};
    ///
    /// # fn example(runtime: &Runtime) -> Result<(), harness_runtime::RuntimeError> {
    /// let mut origin = Origin::default();
    /// origin.thread = Some("support-17".into());
    /// let parts = runtime.run_parts(&origin, MessageOptions::default())?;
    /// assert!(parts.ports.session.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RuntimeError::OtherDescriptor`] when `origin` names a descriptor that is not that of the runtime, unless
    /// [`ThreadConfig::any_descriptor`](crate::ThreadConfig::any_descriptor) is set.
    pub fn run_parts(&self, origin: &Origin, options: MessageOptions) -> Result<RunParts, RuntimeError> {
        let settled = options.over(self.config());
        let config = &settled.config;
        let (wanted, own) = (origin.descriptor_hash.as_deref(), config.origin.descriptor_hash.as_deref());
        if let (Some(wanted), Some(own)) = (wanted, own)
            && wanted != own
            && !config.any_descriptor
        {
            return Err(other_descriptor(origin, wanted, own));
        }
        let mut ports = config.ports.clone();
        ports.model = Arc::new(ThreadModel::new(Arc::clone(&settled), None));
        (ports.session, ports.checkpoints, ports.steering) = (None, None, None);
        ports.agents = Arc::new(PromptedAgents {
            settled: Arc::clone(&settled),
            host: (self.root_cwd().clone(), self.params().clone()),
            origin: origin.clone(),
            made: OnceLock::new(),
        });
        let control =
            config.control.as_ref().map_or_else(|| Box::new(PlainControl::default()) as _, |new| new());
        let delivery = DeliveryRules {
            steering: config.steering_mode,
            follow_up: config.follow_up_mode,
            late_steering: config.late_steering,
        };
        let (spec, allowed_tools) = (Arc::new(config.run.clone()), config.active_tools.clone());
        Ok(RunParts { ports, spec, control, delivery, allowed_tools })
    }
}

fn other_descriptor(origin: &Origin, wanted: &str, own: &str) -> RuntimeError {
    let thread = origin.thread.clone().unwrap_or_default();
    let text = format!("thread `{thread}` was started under descriptor {wanted}, this is {own}");
    RuntimeError::OtherDescriptor(SessionError::new("session.other_descriptor", text))
}

/// The agents of a run. Their context is created when the first of them is prepared: only then the prompt is known.
struct PromptedAgents {
    settled: Arc<ResolvedConfig>,
    host: (RootCwd, Params),
    origin: Origin,
    made: OnceLock<Result<Arc<ThreadAgents>, Fault>>,
}

impl PromptedAgents {
    fn make(&self, log: &Prefix) -> Result<Arc<ThreadAgents>, Fault> {
        let Origin { thread, run, .. } = self.origin.clone();
        let setup = RunSetup::new(&thread.unwrap_or_default(), &run.unwrap_or_default(), None, &self.settled);
        let setup = self.settled.set_up(setup, || last_said(log.iter()))?;
        let settled = Arc::clone(&self.settled);
        Ok(Arc::new(ThreadAgents::new(settled, self.host.clone(), setup.agents, log.clone())))
    }
}

impl AgentSource for PromptedAgents {
    async fn prepare(&self, ask: &PrepareAsk) -> Result<AgentConfig, Fault> {
        let agents = self.made.get_or_init(|| self.make(&ask.log)).clone()?;
        agents.prepare(ask).await
    }
}
