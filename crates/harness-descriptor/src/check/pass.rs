//! The pass over a descriptor that finds everything.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use harness_diagnostics::document::{Document, NodeId};
use harness_diagnostics::{Diagnostic, Severity};

use super::lint::{self, Found};
use super::options::CheckOptions;
use super::report::Report;
use crate::descriptor::{Descriptor, Warning};
use crate::error::{DescriptorError, Fault};
use crate::faults::Faults;
use crate::field::Field;
use crate::graph::{ContextInput, Graph, Registry, defaults};
use crate::load::{FileSource, TextSource, Watch};
use crate::unknown::UnknownKey;

/// Checks a descriptor and its prompt files on disk, with the descriptor's directory as root.
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
    /// Reports all errors and warnings instead of the first error.
    ///
    /// Invalid YAML is the only error of its text, because the rest cannot be read.
    pub fn check(self, options: &CheckOptions) -> Report {
        Pass::new(options).run(|pass| self.load_watched(pass))
    }
}

impl FileSource {
    /// Reports all errors and warnings instead of the first error. Blocks while files are read.
    ///
    /// Invalid YAML is the only error of its text, because the rest cannot be read.
    pub fn check(self, options: &CheckOptions) -> Report {
        Pass::new(options).run(|pass| self.load_watched(pass))
    }
}

struct Pass<'a> {
    options: &'a CheckOptions,
    faults: Faults,
    found: Found,
    /// Unknown keys; reported here if loading ends before a graph could be built.
    unknown: Vec<UnknownKey>,
}

impl Watch for Pass<'_> {
    fn parsed(&mut self, document: &Document, root: NodeId, unknown: &[UnknownKey]) {
        lint::source(document, root, &mut self.found);
        self.unknown = unknown.to_vec();
    }

    fn faults(&self) -> &Faults {
        &self.faults
    }
}

impl<'a> Pass<'a> {
    fn new(options: &'a CheckOptions) -> Self {
        Self { options, faults: Faults::all(), found: Found::default(), unknown: Vec::new() }
    }

    fn run(mut self, load: impl FnOnce(&mut Self) -> Result<Descriptor, DescriptorError>) -> Report {
        let loaded = load(&mut self);
        if loaded.is_err() {
            for key in &self.unknown {
                // A sink that is full has said enough.
                let _ = self.faults.report(key.error());
            }
        }
        let built = loaded.map(|descriptor| {
            let registry = match &self.options.registry {
                Some(registry) => Cow::Borrowed(registry),
                None => Cow::Owned(Registry::stand_in(&descriptor)),
            };
            let graph = self.graph(&descriptor, &registry);
            (descriptor, graph)
        });
        let full = self.faults.is_full();
        let mut errors = self.faults.into_found();
        let (descriptor, graph, stopped) = match built {
            Ok((descriptor, graph)) => {
                let faulty = |codes: &[&str]| errors.iter().any(|error| codes.contains(&error.kind()));
                lint::graph(&descriptor, &faulty, &mut self.found);
                match graph {
                    Ok(graph) => (Some(descriptor), graph, None),
                    Err(error) => (Some(descriptor), None, Some(error)),
                }
            }
            Err(error) => (None, None, Some(error)),
        };
        // A sink that is full hands back the fault that did not fit.
        let truncated = self.found.truncated || full && stopped.is_some();
        errors.extend(stopped);
        let mut diagnostics = unique(&errors);
        diagnostics.extend(self.found.into_warnings());
        diagnostics.extend(descriptor.iter().flat_map(|descriptor| lossy(descriptor, self.options.strict)));
        sort(&mut diagnostics, descriptor.as_ref());
        let sound = diagnostics.iter().all(|diagnostic| diagnostic.severity != Severity::Error);
        Report {
            diagnostics,
            contract: None,
            descriptor: descriptor.filter(|_| sound),
            graph: graph.filter(|_| sound),
            truncated,
        }
    }

    fn graph(&self, descriptor: &Descriptor, registry: &Registry) -> Result<Option<Graph>, DescriptorError> {
        let graph = Graph::assemble(descriptor, registry, &self.faults)?;
        defaults(descriptor.document(), descriptor.root_id(), &ContextInput::new(""), &self.faults)?;
        Ok(graph)
    }
}

/// Warnings of reading.
fn lossy(descriptor: &Descriptor, strict: bool) -> impl Iterator<Item = Diagnostic> {
    let severity = if strict { Severity::Error } else { Severity::Warning };
    descriptor.warnings().into_iter().map(move |warning| {
        let Warning { kind, place } = warning;
        Diagnostic::new(severity, kind.code(), kind.to_string()).at(place)
    })
}

/// Orders by place: what has none first, then the descriptor itself, then its prompts.
fn sort(diagnostics: &mut [Diagnostic], descriptor: Option<&Descriptor>) {
    let label = descriptor.map(|descriptor| descriptor.document().label());
    diagnostics.sort_by_key(|diagnostic| {
        let place = diagnostic.place.as_ref();
        place.map(|place| (Some(&place.file) != label, Arc::clone(&place.file), place.bytes.start))
    });
}

/// Converts errors to diagnostics, each once: instructions that several agents share are checked
/// for each of them.
fn unique(found: &[DescriptorError]) -> Vec<Diagnostic> {
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

/// Distinguishes two errors of one kind at one place.
fn subject(fault: &Fault) -> String {
    if let Fault::WrongType { field, .. } = fault {
        if matches!(field, Field::Section(_) | Field::EntryAgent) {
            return field.to_string();
        }
        if let Field::Item { below, .. } | Field::Part { below, .. } = field {
            return (*below).to_owned();
        }
    }
    if let Fault::Setting { message, .. } = fault {
        return message.clone();
    }
    if let Fault::BadSegment { segment, .. } = fault {
        return segment.clone();
    }
    fault.context_path().unwrap_or_default().to_owned()
}
