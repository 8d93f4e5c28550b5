//! The pass over a descriptor that finds everything.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::diagnostic::{Diagnostic, Severity};
use super::options::CheckOptions;
use super::report::Report;
use crate::descriptor::Descriptor;
use crate::document::{Document, NodeId};
use crate::error::{DescriptorError, Fault};
use crate::faults::Faults;
use crate::field::Field;
use crate::graph::{Bindings, BuildOptions, ContextInput, Graph, defaults};
use crate::load::{FileSource, TextSource, Watch};

/// Checks a descriptor and its prompt files on disk, the descriptor's folder as root.
///
/// Blocks while files are read. [`FileSource::check`] has the options of loading.
pub fn check_file(path: impl Into<PathBuf>, options: &CheckOptions) -> Report {
    FileSource::new(path).check(options)
}

/// Checks a descriptor that uses no prompt files.
///
/// [`TextSource::check`] has the options of loading.
pub fn check_text(yaml: impl Into<String>, options: &CheckOptions) -> Report {
    TextSource::new(yaml).check(options)
}

impl TextSource {
    /// Reports all faults and warnings instead of the first fault.
    ///
    /// A text that is no YAML has that one fault: the rest cannot be read.
    pub fn check(self, options: &CheckOptions) -> Report {
        Pass::new(options).finish(|pass, faults| self.load_watched(pass, faults))
    }
}

impl FileSource {
    /// Reports all faults and warnings instead of the first fault. Blocks while files are read.
    ///
    /// A text that is no YAML has that one fault: the rest cannot be read.
    pub fn check(self, options: &CheckOptions) -> Report {
        Pass::new(options).finish(|pass, faults| self.load_watched(pass, faults))
    }
}

struct Pass<'a> {
    options: &'a CheckOptions,
    warnings: Vec<Diagnostic>,
}

impl Watch for Pass<'_> {
    fn parsed(&mut self, _document: &Document, _root: NodeId) {}
}

impl<'a> Pass<'a> {
    fn new(options: &'a CheckOptions) -> Self {
        Self { options, warnings: Vec::new() }
    }

    fn finish(
        mut self,
        load: impl FnOnce(&mut Self, &Faults) -> Result<Descriptor, DescriptorError>,
    ) -> Report {
        let faults = Faults::all();
        let outcome = load(&mut self, &faults);
        let built = outcome.and_then(|descriptor| {
            let graph = self.graph(&descriptor, &faults)?;
            Ok((descriptor, graph))
        });
        let mut found = faults.into_found();
        let (descriptor, graph, truncated) = match built {
            Ok((descriptor, graph)) => (Some(descriptor), graph, false),
            // A sink that is full hands back the fault that did not fit.
            Err(error) => {
                let truncated = !found.is_empty();
                found.push(error);
                (None, None, truncated)
            }
        };
        let label = descriptor.as_ref().map(|descriptor| Arc::clone(descriptor.document().label()));
        let mut diagnostics = unique(found);
        let sound = diagnostics.is_empty();
        diagnostics.extend(self.warnings);
        let strict = self.options.strict;
        for warning in descriptor.iter().flat_map(Descriptor::warnings) {
            let mut diagnostic = Diagnostic::from(warning);
            if strict {
                diagnostic.severity = Severity::Error;
            }
            diagnostics.push(diagnostic);
        }
        diagnostics.sort_by_key(|diagnostic| {
            let place = diagnostic.place.as_ref();
            place.map(|place| {
                (Some(&place.file) != label.as_ref(), Arc::clone(&place.file), place.bytes.start)
            })
        });
        let sound = sound && !(strict && diagnostics.iter().any(|found| found.severity == Severity::Error));
        Report {
            diagnostics,
            descriptor: descriptor.filter(|_| sound),
            graph: graph.filter(|_| sound),
            truncated,
        }
    }

    fn graph(&mut self, descriptor: &Descriptor, faults: &Faults) -> Result<Option<Graph>, DescriptorError> {
        let bindings = self.options.registry.as_ref().map_or(Bindings::Unknown, Bindings::Registry);
        let graph = Graph::assemble(descriptor, bindings, &BuildOptions::default(), faults)?;
        defaults(descriptor.document(), descriptor.root_id(), &ContextInput::new(""), faults)?;
        Ok(graph)
    }
}

/// Faults as diagnostics, each once: instructions that several agents share are checked for each of
/// them.
fn unique(found: Vec<DescriptorError>) -> Vec<Diagnostic> {
    let mut seen = HashSet::new();
    found
        .iter()
        .filter(|error| {
            let place = error.place().map(|place| (Arc::clone(&place.file), place.bytes.clone()));
            place.is_none_or(|place| seen.insert((error.kind(), place, subject(error.fault()))))
        })
        .map(Diagnostic::from)
        .collect()
}

/// What tells two faults of one kind at one place apart.
fn subject(fault: &Fault) -> String {
    if let Fault::WrongType { field, .. } = fault {
        if matches!(field, Field::Section(_) | Field::EntryAgent) {
            return field.to_string();
        }
        if let Field::Item { below, .. } | Field::Part { below, .. } = field {
            return (*below).to_owned();
        }
    }
    if let Fault::BadSegment { segment, .. } = fault {
        return segment.clone();
    }
    fault.context_path().unwrap_or_default().to_owned()
}
