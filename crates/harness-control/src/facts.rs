//! Facts from a workspace, a schema validator and checks of the application.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use harness_core::canonical::sha256_hex;
use harness_core::decide::{DecideCx, FactSource};
use harness_core::port::BoxFuture;
use harness_core::tool::{SchemaValidator, ShallowSchemas};
use harness_core::{Fault, FaultSource, Json};
use harness_host::{DynWorkspace, EntryKind, WorkspaceFault, WorkspaceFaultCode, normal_path};

use crate::contract::{FactsAsk, FactsFound, FileFact, SchemaAsk, SchemaData};

/// Maximum directory entries searched for a file that cannot be read.
const LISTED: u32 = 10_000;

/// Check of the application: returns a finding, or the reason of a failure.
pub type ContractCheck =
    Arc<dyn for<'a> Fn(&'a DecideCx) -> BoxFuture<'a, Result<String, String>> + Send + Sync + 'static>;

/// Source of facts: a workspace, a schema validator, and the application's checks and data.
///
/// It reports size and SHA-256 of text files, and the size of other files. The default validator checks only the
/// top level of schemas.
///
/// ```
/// use std::sync::Arc;
/// use harness_control::StandardFacts;
///
/// let facts = StandardFacts::default()
///     .with_check("tests", Arc::new(|_| Box::pin(async { Ok("all passed".to_owned()) })));
/// ```
#[derive(Clone)]
pub struct StandardFacts {
    workspace: Option<Arc<dyn DynWorkspace>>,
    schemas: Arc<dyn SchemaValidator>,
    checks: BTreeMap<String, ContractCheck>,
    data: BTreeMap<String, serde_json::Value>,
}

impl Default for StandardFacts {
    fn default() -> Self {
        Self {
            workspace: None,
            schemas: Arc::new(ShallowSchemas),
            checks: BTreeMap::new(),
            data: BTreeMap::new(),
        }
    }
}

impl fmt::Debug for StandardFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StandardFacts")
            .field("workspace", &self.workspace.is_some())
            .field("checks", &self.checks.keys())
            .finish_non_exhaustive()
    }
}

impl StandardFacts {
    /// Sets the workspace. Without one, files are unknown.
    #[must_use]
    pub fn with_workspace(self, workspace: Arc<dyn DynWorkspace>) -> Self {
        Self { workspace: Some(workspace), ..self }
    }

    /// Sets the validator.
    #[must_use]
    pub fn with_schemas(self, schemas: Arc<dyn SchemaValidator>) -> Self {
        Self { schemas, ..self }
    }

    /// Adds a check, replacing one with this name.
    #[must_use]
    pub fn with_check(mut self, name: impl Into<String>, check: ContractCheck) -> Self {
        self.checks.insert(name.into(), check);
        self
    }

    /// Adds data for predicates, replacing data with this name.
    #[must_use]
    pub fn with_data(mut self, name: impl Into<String>, data: serde_json::Value) -> Self {
        self.data.insert(name.into(), data);
        self
    }

    /// Whether a check with this name exists.
    pub fn has_check(&self, name: &str) -> bool {
        self.checks.contains_key(name)
    }

    fn validate(&self, ask: &SchemaAsk) -> Result<(), String> {
        let data = match &ask.data {
            SchemaData::Value(data) => data,
            SchemaData::Named(name) => {
                self.data.get(name).ok_or_else(|| format!("no data named `{name}`"))?
            }
        };
        self.schemas.check(&ask.schema, data)
    }

    async fn inspect(&self, path: &str) -> FileFact {
        let Some(workspace) = &self.workspace else {
            return FileFact::Unknown { reason: "the run has no workspace".to_owned() };
        };
        match workspace.read_boxed(path).await {
            Ok(Some(file)) if file.entry.kind == EntryKind::File => {
                let digest = (!file.base64).then(|| sha256_hex(&file.content));
                let bytes = if file.base64 { file.entry.size } else { None };
                FileFact::File { bytes: bytes.unwrap_or(file.content.len() as u64), digest }
            }
            Ok(Some(_)) => FileFact::NotAFile,
            Ok(None) => self.inspect_listing(&**workspace, path, None).await,
            Err(fault) => self.inspect_listing(&**workspace, path, Some(fault)).await,
        }
    }

    /// Inspects a path that cannot be read by listing its directory.
    async fn inspect_listing(
        &self,
        workspace: &dyn DynWorkspace,
        path: &str,
        fault: Option<WorkspaceFault>,
    ) -> FileFact {
        let unknown = |fault: &WorkspaceFault| FileFact::Unknown { reason: fault.message.clone() };
        match &fault {
            Some(fault) if fault.code == WorkspaceFaultCode::WrongKind => return FileFact::NotAFile,
            Some(fault) if fault.code == WorkspaceFaultCode::NotFound => return FileFact::Missing,
            Some(fault)
                if !matches!(fault.code, WorkspaceFaultCode::TooLarge | WorkspaceFaultCode::NotText) =>
            {
                return unknown(fault);
            }
            Some(_) | None => {}
        }
        let path = normal_path(path);
        let parent = path.rsplit_once('/').map_or("/", |(parent, _)| parent);
        let listed = workspace.list_boxed(parent, 1, LISTED).await.unwrap_or_default();
        let found = listed.into_iter().find(|entry| normal_path(&entry.path) == path);
        match (found, fault) {
            (Some(entry), _) if entry.kind != EntryKind::File => FileFact::NotAFile,
            (Some(entry), Some(_)) => FileFact::File { bytes: entry.size.unwrap_or(0), digest: None },
            (None, Some(fault)) => unknown(&fault),
            (_, None) => FileFact::Missing,
        }
    }
}

impl FactSource for StandardFacts {
    async fn gather(&self, ask: &Json, cx: &DecideCx) -> Result<Json, Fault> {
        let invalid = |error: serde_json::Error| Fault::new(FaultSource::Facts, "form", error.to_string());
        let ask: FactsAsk = ask.to().map_err(invalid)?;
        let mut found = FactsFound { data: self.data.clone(), ..FactsFound::default() };
        for path in &ask.files {
            found.files.insert(path.clone(), self.inspect(path).await);
        }
        for name in &ask.checks {
            if let Some(check) = self.checks.get(name) {
                found.checks.insert(name.clone(), check(cx).await);
            }
        }
        found.schemas = ask.schemas.iter().map(|ask| self.validate(ask)).collect();
        Json::of(&found).map_err(invalid)
    }
}
