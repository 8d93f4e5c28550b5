//! Vectors of kind `workspace-tools`: one call of a workspace tool over files in memory.
//!
//! Snippets are as short as those of the suite's own files.

use std::sync::{Arc, Mutex, PoisonError};

use harness::tools::{MemoryWorkspace, WorkspaceOptions, WorkspaceTools};
use harness_core::machine::Origin;
use harness_core::message::ToolCall;
use harness_core::port::{
    EntryKind, ToolCx, ToolOutcome, ToolRegistry, ToolScope, Workspace, WorkspaceEntry, WorkspaceFault,
    WorkspaceFaultCode, WorkspaceFile, WorkspaceHit,
};
use harness_core::{Json, ToolName, canonical};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Value, json};

use super::outcome;
use super::turn::compare::same;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the one vector of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    vector.parse().and_then(|described: Described| check(&described)).into()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Described {
    vfs: Vec<File>,
    #[serde(default)]
    options: Options,
    #[serde(default)]
    r#override: Override,
    #[serde(default)]
    no_provider: bool,
    allowed: Option<Vec<String>>,
    call: Call,
    expect: Value,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Options {
    default_search_limit: Option<f64>,
    max_list_depth: Option<f64>,
}

#[derive(Deserialize)]
struct Call {
    id: String,
    name: String,
    input: Json,
}

/// A file or an entry, as vectors write it.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    path: String,
    r#type: Option<String>,
    content: Option<String>,
    repeat: Option<Repeat>,
    encoding: Option<String>,
    provider: Option<String>,
    title: Option<String>,
    revision: Option<String>,
    updated_at: Option<String>,
    size: Option<u64>,
    snippet: Option<String>,
    #[serde(default)]
    properties: Pairs,
}

#[derive(Clone, Deserialize)]
struct Repeat {
    unit: String,
    times: usize,
}

/// The scripted answers of the provider.
#[derive(Clone, Default, Deserialize)]
struct Override {
    search: Option<Scripted<Vec<File>>>,
    list: Option<Scripted<Vec<File>>>,
    read: Option<Scripted<File>>,
}

#[derive(Clone, Deserialize)]
struct Scripted<T> {
    returns: Option<T>,
    throw: Option<String>,
}

/// Texts by name, in the order of the file.
#[derive(Clone, Default)]
struct Pairs(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Ordered;
        impl<'de> Visitor<'de> for Ordered {
            type Value = Pairs;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("texts by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Ordered)
    }
}

impl File {
    fn entry(&self) -> WorkspaceEntry {
        let kind = match self.r#type.as_deref() {
            Some("dir") => EntryKind::Dir,
            Some("unknown") => EntryKind::Unknown,
            _ => EntryKind::File,
        };
        let mut entry = WorkspaceEntry::new(&*self.path, kind);
        entry.provider.clone_from(&self.provider);
        entry.title.clone_from(&self.title);
        entry.revision.clone_from(&self.revision);
        entry.updated_at.clone_from(&self.updated_at);
        entry.size = self.size;
        entry.properties.clone_from(&self.properties.0);
        entry
    }

    fn file(&self) -> WorkspaceFile {
        let repeated = self.repeat.as_ref().map(|repeat| repeat.unit.repeat(repeat.times));
        let content = self.content.clone().or(repeated).unwrap_or_default();
        let mut file = WorkspaceFile::text(&*self.path, content);
        let size = file.entry.size;
        file.entry = self.entry();
        file.entry.size = file.entry.size.or(size);
        file.base64 = self.encoding.as_deref() == Some("base64");
        file
    }
}

/// The vector's files, with scripted answers, and a list of what was asked.
struct Provider {
    files: MemoryWorkspace,
    scripted: Override,
    calls: Arc<Mutex<Vec<Value>>>,
}

impl Provider {
    fn asked(&self, call: Value) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }
}

fn scripted<T: Clone>(answer: Option<&Scripted<T>>) -> Option<Result<Option<T>, WorkspaceFault>> {
    let answer = answer?;
    Some(match &answer.throw {
        Some(message) => Err(WorkspaceFault::new(WorkspaceFaultCode::Unavailable, &**message)),
        None => Ok(answer.returns.clone()),
    })
}

impl Workspace for Provider {
    async fn list(&self, path: &str, depth: u32, limit: u32) -> Result<Vec<WorkspaceEntry>, WorkspaceFault> {
        self.asked(json!({ "method": "list", "path": path, "options": { "depth": depth, "limit": limit } }));
        match scripted(self.scripted.list.as_ref()) {
            Some(answer) => Ok(answer?.unwrap_or_default().iter().map(File::entry).collect()),
            // The suite's own provider takes blanks around a path for nothing; ours takes names exactly.
            None => self.files.list(path.trim(), depth, limit).await,
        }
    }

    async fn read(&self, path: &str) -> Result<Option<WorkspaceFile>, WorkspaceFault> {
        self.asked(json!({ "method": "read", "path": path }));
        match scripted(self.scripted.read.as_ref()) {
            Some(answer) => Ok(answer?.as_ref().map(File::file)),
            None => self.files.read(path.trim()).await,
        }
    }

    async fn search(
        &self,
        query: &str,
        provider: Option<&str>,
        limit: u32,
    ) -> Result<Vec<WorkspaceHit>, WorkspaceFault> {
        let options = match provider {
            Some(provider) => json!({ "provider": provider, "limit": limit }),
            None => json!({ "limit": limit }),
        };
        self.asked(json!({ "method": "search", "query": query, "options": options }));
        match scripted(self.scripted.search.as_ref()) {
            Some(answer) => {
                let files = answer?.unwrap_or_default();
                Ok(files.iter().map(|file| WorkspaceHit::new(file.entry(), file.snippet.clone())).collect())
            }
            None => self.files.search(query, provider, limit).await,
        }
    }
}

/// A limit as the source reads it: what is absent, no number or below 1 is the default, the rest is floored.
fn limit(value: Option<f64>) -> u32 {
    let value = value.filter(|value| value.is_finite() && *value >= 1.0).unwrap_or(0.0);
    value.floor().to_string().parse().unwrap_or(u32::MAX)
}

fn check(vector: &Described) -> Result<(), String> {
    let calls = Arc::new(Mutex::default());
    let provider = Provider {
        files: MemoryWorkspace::new(vector.vfs.iter().map(File::file)).with_snippet(10, 20),
        scripted: vector.r#override.clone(),
        calls: Arc::clone(&calls),
    };
    let mut options = WorkspaceOptions::default();
    options.providers = ["github", "slack", "notion", "linear"].map(str::to_owned).to_vec();
    options.search_limit = limit(vector.options.default_search_limit);
    options.list_depth = limit(vector.options.max_list_depth);
    let tools = if vector.no_provider {
        WorkspaceTools::unavailable(options)
    } else {
        WorkspaceTools::new(Arc::new(provider), options)
    };
    let tools = tools.into_set();
    let call = Arc::new(ToolCall::new(&*vector.call.id, &*vector.call.name, vector.call.input.clone()));
    let allowed =
        vector.allowed.as_ref().map(|names| names.iter().map(|name| ToolName::from(&**name)).collect());
    let scope = ToolScope::new(Arc::new(Origin::default()), allowed);

    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|e| e.to_string())?;
    let listed = runtime.block_on(tools.list(&scope)).map_err(|e| e.to_string())?;
    let done =
        runtime.block_on(tools.call(ToolCx::for_call(Arc::clone(&call)))).map_err(|e| e.to_string())?;

    let expected = |key: &str| vector.expect.get(key).unwrap_or(&Value::Null);
    let listed = listed.iter().map(|def| json!(def.name.as_str())).collect();
    same("listedTools", expected("listedTools"), &listed)?;
    let asked = calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
    same("providerCalls", expected("providerCalls"), &Value::Array(asked))?;
    same_result(expected("result"), &call, &done)
}

/// Compares the result; a long output by its digest.
fn same_result(expected: &Value, call: &ToolCall, done: &ToolOutcome) -> Result<(), String> {
    let mut expected = expected.clone();
    let mut got = outcome::result(call, done)?;
    let digest = expected.as_object_mut().and_then(|result| result.remove("outputDigest"));
    if let Some(digest) = digest {
        let output = outcome::output(done);
        let part = |key: &str| digest.get(key).and_then(Value::as_str).unwrap_or_default();
        let hash = canonical::sha256_hex(&output);
        let same_ends = output.starts_with(part("head")) && output.ends_with(part("tail"));
        let units = output.encode_utf16().count();
        let have =
            json!({ "utf16Length": units, "utf8Bytes": output.len(), "sha256": hash, "sameEnds": same_ends });
        let want = json!({
            "utf16Length": digest.get("utf16Length"),
            "utf8Bytes": digest.get("utf8Bytes"),
            "sha256": digest.get("sha256"),
            "sameEnds": true,
        });
        same("result.outputDigest", &want, &have)?;
        got.as_object_mut().and_then(|result| result.remove("output"));
    }
    same("result", &expected, &got)
}
