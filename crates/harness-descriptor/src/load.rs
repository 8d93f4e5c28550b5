//! Loading: from a text with its prompts, or from files.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness_diagnostics::document::{Document, NodeId};

use crate::descriptor::Descriptor;
use crate::disk::{Opened, PromptFiles, PromptText, ReadFault};
use crate::error::{DescriptorError, Fault};
use crate::faults::Faults;
use crate::field::{Expected, Field};
use crate::limits::Limits;
use crate::materialize::{Plan, PromptRef};
use crate::number::is_blank;
use crate::output::OutputFile;
use crate::paths::{Absolute, Folders, check_form, is_inside};
use crate::run::ContractFile;
use crate::unknown::{self, UnknownKey};
use crate::value::{Map, Value};

const INLINE_LABEL: &str = "<inline descriptor>";

/// A descriptor as YAML text, with the texts of its prompt files beside it.
///
/// Nothing is read from disk. The default has no path, no root and no prompts; prompt paths are
/// then relative to the current directory, in name only.
///
/// ```
/// use harness_descriptor::TextSource;
///
/// let yaml = "runtime: { entry_agent: a }\nagents: { a: { model: m, instructions_file: a.md } }";
/// let descriptor = TextSource::new(yaml).prompts([("a.md", "You are brief.")]).load()?;
/// assert!(descriptor.hash().to_string().starts_with("sha256:"));
/// # Ok::<(), harness_descriptor::DescriptorError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "call `load`"]
pub struct TextSource {
    yaml: String,
    path: Option<PathBuf>,
    root: Option<PathBuf>,
    prompts: Option<PromptMap>,
    limits: Limits,
}

/// A descriptor file, with its prompt files on disk.
///
/// Links are followed; their targets must be inside the root directory.
#[derive(Clone, Debug)]
#[must_use = "call `load`"]
pub struct FileSource {
    path: PathBuf,
    root: Option<PathBuf>,
    limits: Limits,
}

/// Texts of prompt files by path, in order; the later of two entries for one file wins.
#[derive(Clone, Debug, Default)]
pub struct PromptMap {
    /// Texts by path; `None` is an entry that is not a string, which is reported in its turn.
    entries: Vec<(String, Option<Arc<str>>)>,
}

impl<K: Into<String>, V: Into<Arc<str>>> FromIterator<(K, V)> for PromptMap {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let entries = entries.into_iter().map(|(key, text)| (key.into(), Some(text.into())));
        Self { entries: entries.collect() }
    }
}

impl PromptMap {
    /// Takes a map that arrived as data; entries that are not strings fail when loaded.
    ///
    /// A value that is not a map gives an empty prompt map.
    pub fn from_value(value: &Value) -> Self {
        let entries = value.as_map().into_iter().flat_map(Map::iter);
        let entries = entries.map(|(key, text)| (key.to_owned(), text.as_str().map(Arc::from)));
        Self { entries: entries.collect() }
    }

    fn resolve(self, folders: &Folders) -> Result<HashMap<PathBuf, Arc<str>>, Fault> {
        let mut texts = HashMap::with_capacity(self.entries.len());
        for (key, text) in self.entries {
            let Some(text) = text else {
                return Err(Fault::WrongType { field: Field::PromptEntry(key), expected: Expected::String });
            };
            let field = Field::PromptKey(key.clone());
            check_form(&field, Some(&key), Absolute::Allowed)?;
            texts.insert(folders.resolve(field, &key)?, text);
        }
        Ok(texts)
    }
}

impl TextSource {
    /// A descriptor from this YAML text (JSON is YAML too).
    pub fn new(yaml: impl Into<String>) -> Self {
        let limits = Limits::default();
        Self { yaml: yaml.into(), path: None, root: None, prompts: None, limits }
    }

    /// Sets the path of the text: prompt paths are relative to its directory, and messages show it.
    pub fn path(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Sets the directory that prompt paths must not leave. Default: the directory of the
    /// descriptor's path.
    pub fn root(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = Some(root.into());
        self
    }

    /// The texts of prompt files by path.
    pub fn prompts<K: Into<String>, V: Into<Arc<str>>>(
        self,
        prompts: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        self.prompt_map(prompts.into_iter().collect())
    }

    /// The texts of prompt files as a ready map.
    pub fn prompt_map(mut self, prompts: PromptMap) -> Self {
        self.prompts = Some(prompts);
        self
    }

    /// Bounds other than the defaults.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Reads and materializes the descriptor.
    ///
    /// Stops at the first error; [`Self::check`] reports all.
    pub fn load(self) -> Result<Descriptor, DescriptorError> {
        self.load_watched(&mut Unwatched(Faults::first()))
    }

    pub(crate) fn load_watched(self, watch: &mut impl Watch) -> Result<Descriptor, DescriptorError> {
        let Self { yaml, path, root, prompts, limits } = self;
        let path = path.filter(|path| !path.as_os_str().is_empty());
        let folders = Folders::new(path.as_deref(), root.as_deref())
            .map_err(|source| io_fault(path.unwrap_or_default(), Field::DescriptorPath, source))?;
        let prompts = prompts.map(|prompts| prompts.resolve(&folders)).transpose()?;
        let label = folders.descriptor.as_deref().map_or(INLINE_LABEL.into(), label);
        let mut document = parse(yaml.into_bytes(), label, &limits, watch.faults())?;
        let root = root_object(&document)?;
        let unknown = unknown::keys(&document, root);
        watch.parsed(&document, root, &unknown);
        let faults = watch.faults();
        let plan = Plan::collect(&document, root, &folders, faults)?;
        if let (Some(prompt), None) = (plan.prompts().next(), &prompts) {
            let place = document.place(prompt.node);
            faults.report(DescriptorError::new(Fault::PromptMapRequired, Some(place)))?;
        }
        // Without a map that was said once and for all files.
        let no_map = prompts.is_none();
        let prompts = prompts.unwrap_or_default();
        plan.apply(&mut document, &limits, faults, |document, prompt| {
            let known = prompts.get(&prompt.resolved).map(Arc::clone);
            let known = known.or_else(|| no_map.then(|| "".into()));
            known.map(|text| PromptText { text, lossy: false }).ok_or_else(|| {
                let PromptRef { target, written: path, .. } = prompt.clone();
                DescriptorError::new(Fault::PromptMissing { target, path }, Some(document.place(prompt.node)))
            })
        })?;
        put_outputs(&mut document, root, &folders, faults, |file| {
            let Some(text) = prompts.get(&file.resolved) else {
                let (target, path) = (file.target.clone(), file.written.clone());
                return Err(Fault::PromptMissing { target, path }.into());
            };
            parse(text.as_bytes().to_vec(), file.written.as_str().into(), &limits, faults)
        })?;
        let contract = Contract { root, folders: &folders, faults };
        let contract = contract.put_in(&mut document, |file| match prompts.get(&file.resolved) {
            Some(text) => parse(text.as_bytes().to_vec(), file.written.as_str().into(), &limits, faults),
            None => Err(Fault::ContractMissing { path: file.written.clone() }.into()),
        })?;
        Ok(Descriptor::new(document, root, contract, unknown))
    }
}

impl FileSource {
    /// A descriptor in the file at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), root: None, limits: Limits::default() }
    }

    /// Sets the directory that the descriptor and its prompts must not leave. Default: the
    /// descriptor's directory.
    pub fn root(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = Some(root.into());
        self
    }

    /// Bounds other than the defaults.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Reads and materializes the descriptor. Blocks while files are read.
    ///
    /// Stops at the first error; [`Self::check`] reports all.
    pub fn load(self) -> Result<Descriptor, DescriptorError> {
        self.load_watched(&mut Unwatched(Faults::first()))
    }

    /// Like [`Self::load`], on a thread of the runtime where blocking is allowed.
    ///
    /// Must be called within a tokio runtime. Dropping the future stops the waiting, not the
    /// reading, which ends by itself. Fails with [`Fault::Io`] of kind `Interrupted` when the runtime
    /// shuts down before the file was read.
    #[cfg(feature = "tokio")]
    pub async fn load_async(self) -> Result<Descriptor, DescriptorError> {
        let path = self.path.clone();
        match tokio::task::spawn_blocking(|| self.load()).await {
            Ok(loaded) => loaded,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(io_fault(path, Field::DescriptorPath, io::ErrorKind::Interrupted.into())),
            },
        }
    }

    pub(crate) fn load_watched(self, watch: &mut impl Watch) -> Result<Descriptor, DescriptorError> {
        let Self { path, root, limits } = self;
        if path.to_str().is_some_and(is_blank) {
            let field = Field::DescriptorPath;
            return Err(Fault::WrongType { field, expected: Expected::NonEmptyString }.into());
        }
        let folders = Folders::new(Some(&path), root.as_deref())
            .map_err(|source| io_fault(path.clone(), Field::DescriptorPath, source))?;
        let absolute = folders.descriptor.clone().unwrap_or_else(|| path.clone());
        let outside = |root: &Path| Fault::OutsideRoot {
            field: Field::DescriptorPath,
            path: path.display().to_string(),
            root: root.display().to_string(),
        };
        if !is_inside(&absolute, &folders.root) {
            return Err(outside(&folders.root).into());
        }
        let wanted_by = || Field::DescriptorPath;
        let io = |path: &Path, source| io_fault(path.to_owned(), wanted_by(), source);
        let real_root = fs::canonicalize(&folders.root).map_err(|source| io(&folders.root, source))?;
        let opened = Opened::at(&absolute).map_err(|source| io(&absolute, source))?;
        if !is_inside(&opened.real, &real_root) {
            return Err(outside(&real_root).into());
        }
        let label = label(&opened.real);
        let bytes = opened.read(limits.yaml_bytes()).map_err(|fault| match fault {
            ReadFault::Io(source) => io(&absolute, source),
            ReadFault::TooLarge(actual) => {
                let limit = limits.yaml_bytes();
                Fault::TooLarge { what: "YAML text in bytes", limit, actual }.into()
            }
        })?;
        let mut document = parse(bytes, label, &limits, watch.faults())?;
        let root = root_object(&document)?;
        let unknown = unknown::keys(&document, root);
        watch.parsed(&document, root, &unknown);
        let faults = watch.faults();
        let plan = Plan::collect(&document, root, &folders, faults)?;
        let mut prompts = PromptFiles::read(plan.prompts(), &real_root, &limits);
        plan.apply(&mut document, &limits, faults, |document, prompt| {
            let text = prompts.text(prompt).map_err(DescriptorError::from);
            text.map_err(|error| error.or_at(|| document.place(prompt.node)))
        })?;
        put_outputs(&mut document, root, &folders, faults, |file| file.read(&real_root, &limits, faults))?;
        let contract = Contract { root, folders: &folders, faults };
        let contract = contract.put_in(&mut document, |file| file.read(&real_root, &limits, faults))?;
        Ok(Descriptor::new(document, root, contract, unknown))
    }
}

/// Replaces the names of files with output schemas by their content.
fn put_outputs(
    document: &mut Document,
    root: NodeId,
    folders: &Folders,
    faults: &Faults,
    fetch: impl Fn(&OutputFile) -> Result<Document, DescriptorError>,
) -> Result<(), DescriptorError> {
    for file in OutputFile::all(document, root, folders, faults)? {
        let fetched = fetch(&file).map_err(|error| error.or_at(|| document.place(file.node)));
        if let Some(schema) = faults.keep(fetched)? {
            file.put_in(document, &schema);
        }
    }
    Ok(())
}

/// A contract file of a descriptor.
struct Contract<'a> {
    root: NodeId,
    folders: &'a Folders,
    faults: &'a Faults,
}

impl Contract<'_> {
    /// Replaces the name of the contract file by its content, so that the hash covers it; returns
    /// the contract as written, for the places of its errors.
    fn put_in(
        &self,
        document: &mut Document,
        fetch: impl FnOnce(&ContractFile) -> Result<Document, DescriptorError>,
    ) -> Result<Option<Document>, DescriptorError> {
        let file = self.faults.keep(ContractFile::of(document, self.root, self.folders))?.flatten();
        let Some(file) = file else { return Ok(None) };
        let fetched = fetch(&file).map_err(|error| error.or_at(|| document.place(file.node)));
        let Some(contract) = self.faults.keep(fetched)? else { return Ok(None) };
        if let (Some(run), Some(content)) = (document.get(self.root, "run"), contract.root()) {
            let copy = document.graft(&contract, content, document.bytes(file.node));
            document.set(run, "contract", copy);
        }
        Ok(Some(contract))
    }
}

/// Sees a descriptor while it is loaded.
pub(crate) trait Watch {
    /// The text is read; prompts and parts are not yet in place.
    fn parsed(&mut self, document: &Document, root: NodeId, unknown: &[UnknownKey]);

    /// Error sink from then on.
    fn faults(&self) -> &Faults;
}

struct Unwatched(Faults);

impl Watch for Unwatched {
    fn parsed(&mut self, _: &Document, _: NodeId, _: &[UnknownKey]) {}

    fn faults(&self) -> &Faults {
        &self.0
    }
}

/// Loads a descriptor and its prompt files from disk, with the descriptor's directory as root.
///
/// Blocks while files are read. [`FileSource`] has the options.
pub fn load_file(path: impl Into<PathBuf>) -> Result<Descriptor, DescriptorError> {
    FileSource::new(path).load()
}

/// Loads a descriptor that uses no prompt files from YAML text.
///
/// [`TextSource`] has the options.
pub fn load_text(yaml: impl Into<String>) -> Result<Descriptor, DescriptorError> {
    TextSource::new(yaml).load()
}

pub(crate) fn parse(
    bytes: Vec<u8>,
    label: Arc<str>,
    limits: &Limits,
    faults: &Faults,
) -> Result<Document, DescriptorError> {
    let mut forgiven = Vec::new();
    let collected = faults.collects().then_some(&mut forgiven);
    let document = harness_diagnostics::read(bytes, label, &limits.yaml(), collected);
    forgiven.into_iter().try_for_each(|error| faults.report(error.into()))?;
    Ok(document?)
}

/// The root, if it is what upstream takes for an object.
fn root_object(document: &Document) -> Result<NodeId, DescriptorError> {
    let root = document.root();
    root.filter(|root| document.object(*root).is_some()).ok_or_else(|| {
        let label = document.label().to_string();
        let found = root.map_or("nothing", |root| document.kind(root).name());
        DescriptorError::new(Fault::NotADescriptor { label, found }, root.map(|root| document.place(root)))
    })
}

pub(crate) fn label(path: &Path) -> Arc<str> {
    path.display().to_string().into()
}

pub(crate) fn io_fault(path: PathBuf, wanted_by: Field, source: io::Error) -> DescriptorError {
    Fault::Io { path, wanted_by, source }.into()
}
