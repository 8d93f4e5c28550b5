//! Facts that persist across runs.

#[cfg(feature = "sqlite")]
mod notes;

#[cfg(feature = "sqlite")]
pub(crate) use notes::remembering;

/// Without a fact store, `--memory` is rejected.
#[cfg(not(feature = "sqlite"))]
pub(crate) fn remembering(
    builder: harness::Builder,
    args: &crate::args::ViewArgs,
    _: &std::sync::Arc<dyn harness::core::port::DynModel>,
    _: &std::sync::Arc<dyn harness::core::port::Clock>,
) -> Result<harness::Builder, crate::error::CliError> {
    match args.memory {
        Some(_) => Err(crate::left_out::left_out("`--memory`", "sqlite")),
        None => Ok(builder),
    }
}
