//! Facts from a workspace, a schema validator and named checks.

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

/// Entries of a folder that are looked through for the size of a file that can not be read.
const LISTED: u32 = 10_000;

/// A check of the application's own: what it found, or why it fails.
pub type ContractCheck =
    Arc<dyn for<'a> Fn(&'a DecideCx) -> BoxFuture<'a, Result<String, String>> + Send + Sync + 'static>;

/// Answers from a workspace, a schema validator and named checks.
///
/// Of a file that is text the size and the SHA-256 are found, of any other the size. Without a workspace no
/// file is known, and without another validator the top level of schemas is checked only.
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
    /// The same with the files of a workspace.
    #[must_use]
    pub fn with_workspace(self, workspace: Arc<dyn DynWorkspace>) -> Self {
        Self { workspace: Some(workspace), ..self }
    }

    /// The same with another validator.
    #[must_use]
    pub fn with_schemas(self, schemas: Arc<dyn SchemaValidator>) -> Self {
        Self { schemas, ..self }
    }

    /// The same with a check; it replaces one of the same name.
    #[must_use]
    pub fn with_check(mut self, name: impl Into<String>, check: ContractCheck) -> Self {
        self.checks.insert(name.into(), check);
        self
    }

    /// The same with data for predicates that look into it.
    #[must_use]
    pub fn with_data(mut self, name: impl Into<String>, data: serde_json::Value) -> Self {
        self.data.insert(name.into(), data);
        self
    }

    /// Whether there is a check of that name.
    pub fn has_check(&self, name: &str) -> bool {
        self.checks.contains_key(name)
    }

    fn held(&self, ask: &SchemaAsk) -> Result<(), String> {
        let data = match &ask.data {
            SchemaData::Value(data) => data,
            SchemaData::Named(name) => {
                self.data.get(name).ok_or_else(|| format!("there is no data named `{name}`"))?
            }
        };
        self.schemas.check(&ask.schema, data)
    }

    async fn look(&self, path: &str) -> FileFact {
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
            Ok(None) => self.look_among_siblings(&**workspace, path, None).await,
            Err(fault) => self.look_among_siblings(&**workspace, path, Some(fault)).await,
        }
    }

    /// What a listing says of a path that can not be read.
    async fn look_among_siblings(
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
        let folder = path.rsplit_once('/').map_or("/", |(folder, _)| folder);
        let listed = workspace.list_boxed(folder, 1, LISTED).await.unwrap_or_default();
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
        let unread = |error: serde_json::Error| Fault::new(FaultSource::Facts, "form", error.to_string());
        let ask: FactsAsk = ask.to().map_err(unread)?;
        let mut found = FactsFound { data: self.data.clone(), ..FactsFound::default() };
        for path in &ask.files {
            found.files.insert(path.clone(), self.look(path).await);
        }
        for name in &ask.checks {
            if let Some(check) = self.checks.get(name) {
                found.checks.insert(name.clone(), check(cx).await);
            }
        }
        found.schemas = ask.schemas.iter().map(|ask| self.held(ask)).collect();
        Json::of(&found).map_err(unread)
    }
}
