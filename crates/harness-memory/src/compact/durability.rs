//! What may be done with the result of a tool, and what of it must outlive that.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use harness_core::message::{Block, Message, ToolResultMessage};
use harness_core::port::ToolDef;
use harness_core::{Json, ToolName};
use serde::{Deserialize, Serialize};

use super::key_data::{KeyFields, pairs};

/// What may be done with the result of a tool.
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

impl ToolDurability {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ephemeral => "ephemeral",
            Self::Anchoring => "anchoring",
            Self::Replayable => "replayable",
            Self::NonReplayable => "non_replayable",
        }
    }
}

/// What it costs to call a tool once more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayCost {
    /// Nothing.
    Free,
    /// Little.
    #[default]
    Cheap,
    /// Much.
    Expensive,
}

/// By what one sees that the source of a result has changed.
///
/// ```
/// use harness_memory::compact::durability::DeterminismMetadata;
///
/// let read = DeterminismMetadata { mtime: Some(5.5), ..DeterminismMetadata::default() };
/// assert!(!read.has_changed(&read.clone()));
/// assert!(read.has_changed(&DeterminismMetadata::default()), "nothing to compare is a change");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeterminismMetadata {
    /// [`super::content_hash`] of the source.
    pub content_hash: Option<String>,
    /// The entity tag of a remote source.
    pub etag: Option<String>,
    /// When the source was last changed, in seconds since 1970.
    pub mtime: Option<f64>,
    /// The version of the interface.
    pub version: Option<String>,
}

impl DeterminismMetadata {
    /// Whether the source is another one now. The hash counts if both have one, else the tag, else the
    /// time; when nothing can be compared it counts as changed. An empty text or time is none.
    pub fn has_changed(&self, current: &Self) -> bool {
        fn both<'a>(was: Option<&'a String>, is: Option<&'a String>) -> Option<(&'a str, &'a str)> {
            let filled = |text: Option<&'a String>| text.map(String::as_str).filter(|text| !text.is_empty());
            filled(was).zip(filled(is))
        }
        if let Some((was, is)) = both(self.content_hash.as_ref(), current.content_hash.as_ref()) {
            return was != is;
        }
        if let Some((was, is)) = both(self.etag.as_ref(), current.etag.as_ref()) {
            return was != is;
        }
        match (self.mtime.map(f64::to_bits), current.mtime.map(f64::to_bits)) {
            (Some(was), Some(is)) if was != 0 && is != 0 => was != is,
            _ => true,
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvelopeOutcome {
    /// It did what was asked.
    #[default]
    Success,
    /// It did not.
    Failure,
    /// It did a part.
    Partial,
}

impl EnvelopeOutcome {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Partial => "partial",
        }
    }
}

/// What compaction has to know of a result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolResultEnvelope {
    /// The tool.
    pub tool_name: String,
    /// The call.
    pub tool_call_id: String,
    /// How it ended.
    pub outcome: EnvelopeOutcome,
    /// Values that must outlive the result.
    pub key_fields: KeyFields,
    /// What may be done with this one result; `None` is as the tool's policy says.
    pub durability: Option<ToolDurability>,
    /// The source as it was when the tool ran.
    pub determinism: Option<DeterminismMetadata>,
    /// When the call began, as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When it ended, as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
}

const ENVELOPE: &str = "envelope";

impl ToolResultEnvelope {
    /// The envelope of a result that has none of its own: what its message and the tool's policy tell.
    pub fn of(result: &ToolResultMessage, policies: &DurabilityPolicies) -> Self {
        Self {
            tool_name: result.tool_name.as_str().to_owned(),
            tool_call_id: result.tool_call_id.as_str().to_owned(),
            outcome: if result.is_error { EnvelopeOutcome::Failure } else { EnvelopeOutcome::Success },
            key_fields: policies.key_fields_of(result),
            ..Self::default()
        }
    }

    /// The envelope that a result bears, when it bears one.
    pub fn attached(result: &ToolResultMessage) -> Option<Self> {
        let mine = |block: &Block| {
            let Block::Extension(block) = block else { return None };
            let is_envelope = block.namespace == "harness" && block.name == ENVELOPE;
            if is_envelope { block.data.to().ok() } else { None }
        };
        result.content.iter().find_map(mine)
    }

    /// The envelope as a block for the result that it is about. No model is sent it.
    pub fn block(&self) -> Block {
        // A struct with named fields always has a JSON form.
        Block::extension("harness", ENVELOPE, Json::of(self).unwrap_or_default())
    }

    /// What may be done with the result: its own word, else the tool's policy, else `anchoring`.
    pub fn effective_durability(&self, policies: &DurabilityPolicies) -> ToolDurability {
        self.durability.unwrap_or_else(|| policies.policy_of(&self.tool_name).durability)
    }

    /// What may be done with the result now: a replayable one whose source has changed, as far as the
    /// tool's policy can tell, cannot be called back.
    pub fn durability_now(&self, policies: &DurabilityPolicies) -> ToolDurability {
        let durability = self.effective_durability(policies);
        if durability != ToolDurability::Replayable {
            return durability;
        }
        let Some(capture) = &policies.policy_of(&self.tool_name).capture else { return durability };
        let unchanged =
            self.determinism.as_ref().zip(capture(self)).is_some_and(|(was, is)| !was.has_changed(&is));
        if unchanged { durability } else { ToolDurability::NonReplayable }
    }

    /// What stands for the result once it is cleared.
    ///
    /// ```
    /// use harness_memory::compact::durability::ToolResultEnvelope;
    ///
    /// let mut envelope = ToolResultEnvelope::default();
    /// envelope.tool_name = "web_search".to_owned();
    /// assert_eq!(envelope.placeholder(), "[web_search: success]");
    /// ```
    pub fn placeholder(&self) -> String {
        let head = format!("[{}: {}]", self.tool_name, self.outcome.as_str());
        with_key_data(head, &self.key_fields)
    }

    /// What outlives the result when it is cleared: its key fields, its tool and its outcome.
    pub fn preserved(&self) -> KeyFields {
        let mut fields = self.key_fields.clone();
        fields.insert("tool_name".to_owned(), Json::string(&self.tool_name));
        fields.insert("outcome".to_owned(), Json::string(self.outcome.as_str()));
        fields
    }
}

/// A placeholder, and a second line with what outlives it when there is something.
pub(super) fn with_key_data(head: String, fields: &KeyFields) -> String {
    if fields.is_empty() { head } else { format!("{head}\nKey data: {}", pairs(fields)) }
}

/// Looks at the source of a result again; `None` when it cannot.
pub type Capture = Arc<dyn Fn(&ToolResultEnvelope) -> Option<DeterminismMetadata> + Send + Sync>;

/// What may be done with the results of a tool.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ToolDurabilityPolicy {
    /// What may be done with them. Default `anchoring`.
    pub durability: ToolDurability,
    /// JSON pointers to the values that must outlive them (`/exit_code`), into the structured result or
    /// into a text that is JSON.
    pub key_fields: Vec<String>,
    /// From so many tokens on they are stored elsewhere. Default: the strategy decides.
    pub externalize_threshold_tokens: Option<u64>,
    /// What it costs to call the tool once more. Default `cheap`.
    pub replay_cost: ReplayCost,
    /// Looks at the source of a replayable result again. Without it the source counts as unchanged.
    pub capture: Option<Capture>,
}

impl fmt::Debug for ToolDurabilityPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolDurabilityPolicy")
            .field("durability", &self.durability)
            .field("key_fields", &self.key_fields)
            .field("externalize_threshold_tokens", &self.externalize_threshold_tokens)
            .field("replay_cost", &self.replay_cost)
            .field("capture", &self.capture.is_some())
            .finish()
    }
}

impl ToolDurabilityPolicy {
    /// A policy without key fields.
    pub fn new(durability: ToolDurability) -> Self {
        Self { durability, ..Self::default() }
    }

    /// The same with pointers to what must outlive a result.
    #[must_use]
    pub fn keeping<S: Into<String>>(mut self, pointers: impl IntoIterator<Item = S>) -> Self {
        self.key_fields = pointers.into_iter().map(Into::into).collect();
        self
    }

    /// The same with the tokens from which a result is stored elsewhere.
    #[must_use]
    pub fn externalized_from(mut self, tokens: u64) -> Self {
        self.externalize_threshold_tokens = Some(tokens);
        self
    }

    /// The same with the cost of another call.
    #[must_use]
    pub fn replayed_at(mut self, cost: ReplayCost) -> Self {
        self.replay_cost = cost;
        self
    }

    /// The same with a look at the source.
    #[must_use]
    pub fn with_capture(mut self, capture: Capture) -> Self {
        self.capture = Some(capture);
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
    #[serde(default)]
    replay_cost: ReplayCost,
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
        Self::none()
            .with("read_file", policy(Replayable).replayed_at(ReplayCost::Free))
            .with("list_directory", policy(Ephemeral))
            .with("write_file", policy(Anchoring).keeping(["/path", "/success"]))
            .with("web_search", policy(NonReplayable).externalized_from(500))
            .with("http_request", policy(NonReplayable).keeping(["/status_code", "/url"]))
            .with("run_command", policy(Anchoring).keeping(["/exit_code", "/command"]))
            .with("calculate", policy(Replayable).replayed_at(ReplayCost::Free))
    }

    /// The same with a policy for a tool, in place of the one before.
    #[must_use]
    pub fn with(mut self, tool: impl Into<Arc<str>>, policy: ToolDurabilityPolicy) -> Self {
        self.policies.insert(tool.into(), policy);
        self
    }

    /// The same with what tools declare in their metadata:
    /// `{"compaction": {"durability", "keyFields", "replayCost", "externalizeThresholdTokens"}}`. A
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
                    replay_cost: declared.replay_cost,
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

    fn key_fields_of(&self, result: &ToolResultMessage) -> KeyFields {
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

/// What a result says.
pub(super) fn text_of(result: &ToolResultMessage) -> String {
    result.content.iter().filter_map(Block::as_text).collect()
}

/// The tools of calls by call id: a result whose own name is empty is named by its call.
pub(super) struct ToolNames<'a>(HashMap<&'a str, &'a ToolName>);

impl<'a> ToolNames<'a> {
    /// The calls of `messages`, when some result does not name its tool.
    pub(super) fn of<M: AsRef<Message>>(messages: &'a [M]) -> Self {
        let mut results = messages.iter().filter_map(|message| message.as_ref().as_tool_result());
        if results.all(|result| !result.tool_name.as_str().is_empty()) {
            return Self(HashMap::new());
        }
        let answers = messages.iter().filter_map(|message| message.as_ref().as_assistant());
        let calls = answers.flat_map(harness_core::message::AssistantMessage::tool_calls);
        Self(calls.map(|call| (call.id.as_str(), &call.name)).collect())
    }

    /// The envelope of a result: its own, else one that is made.
    pub(super) fn envelope(
        &self,
        result: &ToolResultMessage,
        policies: &DurabilityPolicies,
    ) -> ToolResultEnvelope {
        if let Some(attached) = ToolResultEnvelope::attached(result) {
            return attached;
        }
        let mut envelope = ToolResultEnvelope::of(result, policies);
        if envelope.tool_name.is_empty()
            && let Some(name) = self.0.get(result.tool_call_id.as_str())
        {
            name.as_str().clone_into(&mut envelope.tool_name);
        }
        envelope
    }
}
