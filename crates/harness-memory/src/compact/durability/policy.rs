//! Durability of tool results.

use std::collections::HashMap;
use std::sync::Arc;

use harness_core::Json;
use harness_core::message::ToolResultMessage;
use harness_core::tool::ToolDef;
use serde::{Deserialize, Serialize};

use super::determinism::DeterminismMetadata;
use super::envelope::{ToolResultEnvelope, text_of};
use super::fields::KeyFields;

/// Durability of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolDurability {
    /// It may be cleared.
    Ephemeral,
    /// It may be cleared when its key fields stay.
    #[default]
    Anchoring,
    /// It may be cleared while its source is as it was: calling again gives it back.
    Replayable,
    /// It is stored elsewhere or stays.
    NonReplayable,
}

/// Looks at the source of a result again; `None` when it cannot.
pub type Capture = Arc<dyn Fn(&ToolResultEnvelope) -> Option<DeterminismMetadata> + Send + Sync>;

/// Rules for the results of a tool.
#[derive(Clone, Default, derive_more::Debug)]
#[non_exhaustive]
pub struct ToolDurabilityPolicy {
    /// Durability of results. Default `anchoring`.
    pub durability: ToolDurability,
    /// JSON pointers to the values that must outlive them (`/exit_code`), into the structured result or
    /// into a text that is JSON.
    pub key_fields: Vec<String>,
    /// From so many tokens on they are stored elsewhere. Default: the strategy decides.
    pub externalize_threshold_tokens: Option<u64>,
    /// Looks at the source of a replayable result again. Without it the source counts as unchanged.
    #[debug(skip)]
    pub capture: Option<Capture>,
}

impl ToolDurabilityPolicy {
    /// A policy without key fields.
    pub fn new(durability: ToolDurability) -> Self {
        Self { durability, ..Self::default() }
    }

    /// Adds pointers to the parts that must survive.
    #[must_use]
    pub fn keeping<S: Into<String>>(mut self, pointers: impl IntoIterator<Item = S>) -> Self {
        self.key_fields = pointers.into_iter().map(Into::into).collect();
        self
    }
}

/// How a tool declares a policy in the metadata of its definition, under `compaction`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Declared {
    #[serde(default)]
    durability: ToolDurability,
    #[serde(default)]
    key_fields: Vec<String>,
    externalize_threshold_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Metadata {
    compaction: Option<Declared>,
}

/// The policies of tools by name; a tool without one is `anchoring`.
///
/// ```
/// use harness_memory::compact::durability::{DurabilityPolicies, ToolDurability, ToolDurabilityPolicy};
///
/// let policies = DurabilityPolicies::built_in()
///     .with("create_order", ToolDurabilityPolicy::new(ToolDurability::Anchoring).keeping(["/order_id"]));
/// assert_eq!(policies.policy_of("web_search").durability, ToolDurability::NonReplayable);
/// assert_eq!(policies.policy_of("unheard_of").durability, ToolDurability::Anchoring);
/// ```
#[derive(Clone, Debug, Default)]
pub struct DurabilityPolicies {
    policies: HashMap<Arc<str>, ToolDurabilityPolicy>,
    other: ToolDurabilityPolicy,
}

impl DurabilityPolicies {
    /// No policy: every tool is `anchoring`.
    pub fn none() -> Self {
        Self::default()
    }

    /// The policies of the usual tools.
    pub fn built_in() -> Self {
        use ToolDurability::{Anchoring, Ephemeral, NonReplayable, Replayable};
        let policy = ToolDurabilityPolicy::new;
        let mut search = policy(NonReplayable);
        search.externalize_threshold_tokens = Some(500);
        Self::none()
            .with("read_file", policy(Replayable))
            .with("list_directory", policy(Ephemeral))
            .with("write_file", policy(Anchoring).keeping(["/path", "/success"]))
            .with("web_search", search)
            .with("http_request", policy(NonReplayable).keeping(["/status_code", "/url"]))
            .with("run_command", policy(Anchoring).keeping(["/exit_code", "/command"]))
            .with("calculate", policy(Replayable))
    }

    /// Sets the policy of a tool.
    #[must_use]
    pub fn with(mut self, tool: impl Into<Arc<str>>, policy: ToolDurabilityPolicy) -> Self {
        self.policies.insert(tool.into(), policy);
        self
    }

    /// Adds the policies that tools declare in their metadata:
    /// `{"compaction": {"durability", "keyFields", "externalizeThresholdTokens"}}`. A
    /// declaration that cannot be read counts as `non_replayable`: nothing of that tool is lost.
    #[must_use]
    pub fn with_declared<'a>(mut self, tools: impl IntoIterator<Item = &'a ToolDef>) -> Self {
        for tool in tools {
            let Some(metadata) = &tool.metadata else { continue };
            let policy = match metadata.to::<Metadata>() {
                Ok(Metadata { compaction: None }) => continue,
                Ok(Metadata { compaction: Some(declared) }) => ToolDurabilityPolicy {
                    durability: declared.durability,
                    key_fields: declared.key_fields,
                    externalize_threshold_tokens: declared.externalize_threshold_tokens,
                    capture: None,
                },
                Err(_) if !metadata.text().contains("\"compaction\"") => continue,
                Err(_) => ToolDurabilityPolicy::new(ToolDurability::NonReplayable),
            };
            self.policies.insert(tool.name.as_str().into(), policy);
        }
        self
    }

    /// The policy of a tool.
    pub fn policy_of(&self, tool: &str) -> &ToolDurabilityPolicy {
        self.policies.get(tool).unwrap_or(&self.other)
    }

    pub(super) fn key_fields_of(&self, result: &ToolResultMessage) -> KeyFields {
        let pointers = &self.policy_of(result.tool_name.as_str()).key_fields;
        if pointers.is_empty() {
            return KeyFields::new();
        }
        let text = || serde_json::from_str(&text_of(result)).ok();
        let Some(data) = result.structured.as_ref().and_then(|data| data.to().ok()).or_else(text) else {
            return KeyFields::new();
        };
        let data: serde_json::Value = data;
        let found = pointers.iter().filter_map(|pointer| {
            let name = pointer.rsplit('/').next().unwrap_or(pointer);
            Some((name.to_owned(), Json::of(data.pointer(pointer)?).ok()?))
        });
        found.collect()
    }
}
