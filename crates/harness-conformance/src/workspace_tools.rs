//! Vectors of kind `workspace-tools`: one call of a workspace tool over files in memory.
//!
//! Snippets are as short as those of the suite's own files.

use std::sync::Arc;

use harness::host::MemoryWorkspace;
use harness::tools::{WorkspaceOptions, WorkspaceTools};
use harness_core::message::ToolCall;
use harness_core::tool::{ToolCx, ToolOutcome, ToolRegistry, ToolScope};
use harness_core::{Json, Origin, ToolName, canonical};
use harness_host::{
    EntryKind, Workspace, WorkspaceEntry, WorkspaceFault, WorkspaceFaultCode, WorkspaceFile, WorkspaceHit,
};
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value, json};

use super::outcome;
use super::turn::compare::same;
use crate::case::block_on;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the one vector of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    vector.parse().and_then(|described: Described| check(&described)).into()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Described {
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    #[serde(rename = "id")]
    _id: IgnoredAny,
    #[serde(rename = "description")]
    _description: IgnoredAny,
    #[serde(rename = "source")]
    _source: IgnoredAny,
    vfs: Vec<File>,
    #[serde(default)]
    options: Options,
    #[serde(default)]
    r#override: Override,
    #[serde(default)]
    no_provider: bool,
    allowed: Option<Vec<String>>,
    call: Call,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Expect {
    listed_tools: Value,
    provider_calls: Value,
    result: Map<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Options {
    default_search_limit: Option<f64>,
    max_list_depth: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    id: String,
    name: String,
    input: Json,
}

/// A file or an entry, as vectors write it.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct File {
    path: String,
    r#type: Option<Kind>,
    content: Option<String>,
    repeat: Option<Repeat>,
    encoding: Option<Encoding>,
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
#[serde(deny_unknown_fields)]
struct Repeat {
    unit: String,
    times: usize,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Dir,
    File,
    Unknown,
}

#[derive(Clone, Copy, Deserialize)]
enum Encoding {
    #[serde(rename = "base64")]
    Base64,
    #[serde(rename = "utf8", alias = "utf-8", alias = "text")]
    Text,
}

/// The scripted answers of the provider.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Override {
    search: Option<Scripted<Vec<File>>>,
    list: Option<Scripted<Vec<File>>>,
    read: Option<Scripted<File>>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scripted<T> {
    returns: Option<T>,
    throw: Option<String>,
    /// Whether a bare text is thrown: the product has one form of failure.
    #[serde(default, rename = "value")]
    _bare: bool,
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
        let kind = match self.r#type {
            Some(Kind::Dir) => EntryKind::Dir,
            Some(Kind::Unknown) => EntryKind::Unknown,
            Some(Kind::File) | None => EntryKind::File,
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
        file.base64 = matches!(self.encoding, Some(Encoding::Base64));
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
        self.calls.lock().push(call);
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

    let listed = block_on(tools.list(&scope))?.map_err(|e| e.to_string())?;
    let done = block_on(tools.call(ToolCx::for_call(Arc::clone(&call))))?.map_err(|e| e.to_string())?;

    let listed = listed.iter().map(|def| json!(def.name.as_str())).collect();
    same("listedTools", &vector.expect.listed_tools, &listed)?;
    let asked = calls.lock().clone();
    same("providerCalls", &vector.expect.provider_calls, &Value::Array(asked))?;
    same_result(&vector.expect.result, &call, &done)
}

/// Compares the result; a long output by its digest.
fn same_result(expected: &Map<String, Value>, call: &ToolCall, done: &ToolOutcome) -> Result<(), String> {
    let mut expected = expected.clone();
    let mut got = outcome::result(call, done)?;
    if let Some(digest) = expected.shift_remove("outputDigest") {
        let digest: Digest = serde_json::from_value(digest).map_err(|e| e.to_string())?;
        let output = outcome::output(done);
        let have = json!({
            "utf16Length": output.encode_utf16().count(),
            "utf8Bytes": output.len(),
            "sha256": canonical::sha256_hex(&output),
            "head": output.starts_with(&digest.head),
            "tail": output.ends_with(&digest.tail),
        });
        let want = json!({
            "utf16Length": digest.utf16_length, "utf8Bytes": digest.utf8_bytes, "sha256": digest.sha256,
            "head": true, "tail": true,
        });
        same("result.outputDigest", &want, &have)?;
        got.as_object_mut().and_then(|result| result.shift_remove("output"));
    }
    same("result", &Value::Object(expected), &got)
}

/// A long output.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Digest {
    utf16_length: usize,
    utf8_bytes: usize,
    sha256: String,
    head: String,
    tail: String,
}
