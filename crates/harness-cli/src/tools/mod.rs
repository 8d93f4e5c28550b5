//! `harness tools`: what a registry file offers, and trying one of its tools.

mod call;
mod list;
#[cfg(feature = "mcp")]
mod servers;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::core::tool::{DynToolRegistry, ToolDef, Toolbox};
use harness::tools::Registry;

use crate::args::ToolsArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::{bind, descriptor, terminal};

/// A tool that the registry offers.
struct Offered {
    target: String,
    def: ToolDef,
    registry: Arc<dyn DynToolRegistry>,
}

/// Lists the tools of a registry file, or calls one. Servers are started or connected to for it, and ended.
pub(crate) fn tools(args: &ToolsArgs) -> Result<Exit, CliError> {
    let registry = Registry::load(&file(args.registry.as_deref())?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| CliError::Io { action: "start the runtime", source })?;
    let done = runtime.block_on(Box::pin(async {
        let done = match &args.call {
            Some(name) => call::call(args, &registry, name).await,
            None => list_all(args, &registry).await,
        };
        registry.close().await;
        done
    }));
    runtime.shutdown_background();
    done
}

/// The named registry file, or the one next to the default descriptor.
fn file(named: Option<&Path>) -> Result<PathBuf, CliError> {
    Ok(match named {
        Some(path) if path.is_dir() => path.join(bind::REGISTRY),
        Some(path) => path.to_owned(),
        None => bind::beside(&descriptor::find(None)?),
    })
}

#[cfg_attr(not(feature = "mcp"), expect(clippy::unused_async, reason = "only servers take time to answer"))]
async fn list_all(args: &ToolsArgs, registry: &Registry) -> Result<Exit, CliError> {
    let mut err = terminal::messages();
    for problem in registry.problems() {
        let _ = writeln!(err, "{problem}");
    }
    #[cfg_attr(not(feature = "mcp"), expect(unused_mut, reason = "only servers add tools"))]
    let mut tools = local(registry);
    #[cfg(feature = "mcp")]
    {
        let (remote, faults) = servers::all(registry).await;
        for fault in faults {
            let _ = writeln!(err, "{fault}");
            if let Some(hint) = fault.hint() {
                let _ = writeln!(err, "  hint: {hint}");
            }
        }
        tools.extend(remote);
    }
    list::list(&tools, args.json)
}

/// The tools that need no server, in the file's order.
fn local(registry: &Registry) -> Vec<Offered> {
    let offered = registry.iter().map(|(target, tool)| Offered {
        target: target.to_owned(),
        def: tool.tool_def().clone(),
        registry: Arc::new(Toolbox::new([Arc::clone(tool)])),
    });
    offered.collect()
}
