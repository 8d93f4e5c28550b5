//! Which items layers, tools and callers may make beyond the base types.

use std::sync::Arc;

use harness_core::message::{Block, Message, ToolCall, ToolResultMessage};
use harness_core::{CallId, Json, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::MemoryError;

/// The four lists of item schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
#[strum(serialize_all = "camelCase")]
pub enum ItemCategory {
    /// Any item.
    Items,
    /// Developer messages.
    DeveloperMessages,
    /// Tool calls.
    ToolCalls,
    /// Results of tool calls.
    ToolResults,
}

type Accepts = dyn Fn(&Json) -> bool + Send + Sync;

/// Says which items are welcome. It is a gate: it never changes an item.
#[derive(Clone, derive_more::Debug)]
pub struct ItemSchema {
    name: Arc<str>,
    tool: Option<ToolName>,
    #[debug(skip)]
    accepts: Arc<Accepts>,
}

impl ItemSchema {
    /// A schema named `name` that accepts what `accepts` says.
    pub fn new(name: impl Into<Arc<str>>, accepts: impl Fn(&Json) -> bool + Send + Sync + 'static) -> Self {
        Self { name: name.into(), tool: None, accepts: Arc::new(accepts) }
    }

    /// A schema that accepts every item of a type.
    pub fn of_type(item_type: impl Into<Arc<str>>) -> Self {
        let name = item_type.into();
        let wanted = Arc::clone(&name);
        Self::new(name, move |item| Head::of(item).is_some_and(|head| head.item_type == *wanted))
    }

    /// Limits the schema to the calls of one tool and their results. It says nothing about other tools.
    #[must_use]
    pub fn of_tool(self, tool: impl Into<ToolName>) -> Self {
        Self { tool: Some(tool.into()), ..self }
    }

    /// Name of the schema.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it accepts the item.
    pub fn accepts(&self, item: &Json) -> bool {
        (self.accepts)(item)
    }

    fn is_about(&self, tool: Option<&ToolName>) -> bool {
        self.tool.as_ref().is_none_or(|of| Some(of) == tool)
    }
}

/// Schemas by category: which items layers, callers and tools may make beyond the base types.
///
/// A layer brings its own ([`LayerDef::schemas`](super::LayerDef::schemas)); those of a whole set are in
/// [`LayerSetup::schemas`](super::LayerSetup::schemas). For a run, `Builder::item_schemas` of the facade applies
/// [`gate`](Self::gate), [`check_prompts`](Self::check_prompts) and [`checked_results`](Self::checked_results).
///
/// ```
/// use harness_core::Json;
/// use harness_memory::layer::{ItemCategory, ItemSchema, ItemSchemas, LayerSetup};
///
/// let orders = ItemSchemas::default().with(ItemCategory::Items, ItemSchema::of_type("shop:order"));
/// assert!(orders.check(&Json::parse(r#"{"type":"shop:order","number":1043}"#)?).is_ok());
/// assert!(orders.check(&Json::parse(r#"{"type":"shop:refund"}"#)?).is_err());
///
/// let mut setup = LayerSetup::new();
/// setup.schemas = orders;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ItemSchemas {
    /// For any item.
    pub items: Vec<ItemSchema>,
    /// For developer messages.
    pub developer_messages: Vec<ItemSchema>,
    /// For tool calls.
    pub tool_calls: Vec<ItemSchema>,
    /// For results of tool calls.
    pub tool_results: Vec<ItemSchema>,
    /// Whether an item of an unknown type needs a schema. Default true.
    pub strict: bool,
}

impl Default for ItemSchemas {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            developer_messages: Vec::new(),
            tool_calls: Vec::new(),
            tool_results: Vec::new(),
            strict: true,
        }
    }
}

impl ItemSchemas {
    /// Adds a schema to a category.
    #[must_use]
    pub fn with(mut self, category: ItemCategory, schema: ItemSchema) -> Self {
        self.list_mut(category).push(schema);
        self
    }

    /// The schemas of both, those of `self` first. `self` decides whether they are strict.
    #[must_use]
    pub fn merged(mut self, other: &Self) -> Self {
        self.items.extend_from_slice(&other.items);
        self.developer_messages.extend_from_slice(&other.developer_messages);
        self.tool_calls.extend_from_slice(&other.tool_calls);
        self.tool_results.extend_from_slice(&other.tool_results);
        self
    }

    /// The schemas of a category.
    pub fn list(&self, category: ItemCategory) -> &[ItemSchema] {
        match category {
            ItemCategory::Items => &self.items,
            ItemCategory::DeveloperMessages => &self.developer_messages,
            ItemCategory::ToolCalls => &self.tool_calls,
            ItemCategory::ToolResults => &self.tool_results,
        }
    }

    fn list_mut(&mut self, category: ItemCategory) -> &mut Vec<ItemSchema> {
        match category {
            ItemCategory::Items => &mut self.items,
            ItemCategory::DeveloperMessages => &mut self.developer_messages,
            ItemCategory::ToolCalls => &mut self.tool_calls,
            ItemCategory::ToolResults => &mut self.tool_results,
        }
    }

    /// Judges an item. What passes is used as it is: nothing is converted, filled in or left out.
    ///
    /// # Errors
    /// When it has no type, or, in strict mode, a type that no schema accepts.
    pub fn check(&self, item: &Json) -> Result<(), MemoryError> {
        let head = Head::of(item).ok_or(MemoryError::NotAnItem)?;
        let categories = [Some(ItemCategory::Items), head.category()];
        let mut schemas = categories.into_iter().flatten().flat_map(|category| self.about(category, None));
        if schemas.any(|schema| schema.accepts(item)) || !self.strict || is_base_type(&head.item_type) {
            return Ok(());
        }
        Err(MemoryError::ItemMismatch {
            category: ItemCategory::Items,
            item_type: Some(Arc::from(head.item_type)),
        })
    }

    /// Judges an item by the schemas of one category; by [`check`](Self::check) where it has none.
    ///
    /// # Errors
    /// When the category has schemas and none of them accepts the item.
    pub fn check_as(&self, category: ItemCategory, item: &Json) -> Result<(), MemoryError> {
        self.judge(category, None, item)
    }

    /// Judges a message by the schemas of its category:
    ///
    /// | message | judged as | category |
    /// |---|---|---|
    /// | custom | `{type, data}` | items |
    /// | system | `{type: "message", role: "developer", content}` | developer messages |
    /// | each tool call of an assistant message | `{type: "function_call", callId, name, arguments}` | tool calls |
    /// | tool result | `{type: "function_call_output", callId, name, output, data?}` | tool results |
    ///
    /// `arguments` and `output` are texts; `data` is the result as JSON, where a tool has one. A category without schemas
    /// accepts the base types, so user messages and assistant texts always pass.
    ///
    /// # Errors
    /// As [`check_as`](Self::check_as).
    pub fn check_message(&self, message: &Message) -> Result<(), MemoryError> {
        match message {
            Message::Custom(custom) if custom.custom_type.is_empty() => Err(MemoryError::NotAnItem),
            Message::Custom(custom) => {
                let item = CustomItem { item_type: &custom.custom_type, data: custom.data.as_ref() };
                self.check(&item_of(&item)?)
            }
            Message::System(system) if self.judges(ItemCategory::DeveloperMessages, None) => {
                let texts = system.content.iter().filter_map(Block::as_text);
                let parts: Vec<_> = texts.map(|text| json!({ "type": "input_text", "text": text })).collect();
                let item = json!({ "type": "message", "role": "developer", "content": parts });
                self.check_as(ItemCategory::DeveloperMessages, &item.into())
            }
            Message::Assistant(answer) => answer.tool_calls().try_for_each(|call| self.check_call(call)),
            Message::ToolResult(result) => self.check_result(result),
            Message::System(_) | Message::User(_) | _ => Ok(()),
        }
    }

    /// Judges a tool call, as [`check_message`](Self::check_message) does.
    ///
    /// # Errors
    /// When there are schemas for calls of this tool and none of them accepts it.
    pub fn check_call(&self, call: &ToolCall) -> Result<(), MemoryError> {
        let (category, tool) = (ItemCategory::ToolCalls, Some(&call.name));
        if !self.judges(category, tool) {
            return Ok(());
        }
        let item = json!({ "type": "function_call", "callId": call.id, "name": call.name,
            "arguments": call.arguments.text() });
        self.judge(category, tool, &item.into())
    }

    fn check_result(&self, result: &ToolResultMessage) -> Result<(), MemoryError> {
        let (category, tool) = (ItemCategory::ToolResults, Some(&result.tool_name));
        if !self.judges(category, tool) {
            return Ok(());
        }
        let item = ResultItem {
            item_type: "function_call_output",
            call_id: &result.tool_call_id,
            name: &result.tool_name,
            output: result.content.iter().filter_map(Block::as_text).collect(),
            data: result.structured.as_ref(),
        };
        self.judge(category, tool, &item_of(&item)?)
    }

    /// Judges by the schemas of a category that are about a tool; by [`check`](Self::check) where there are none.
    fn judge(&self, category: ItemCategory, tool: Option<&ToolName>, item: &Json) -> Result<(), MemoryError> {
        if !self.judges(category, tool) {
            return self.check(item);
        }
        if self.about(category, tool).any(|schema| schema.accepts(item)) {
            return Ok(());
        }
        Err(MemoryError::ItemMismatch { category, item_type: None })
    }

    fn about<'a>(
        &'a self,
        category: ItemCategory,
        tool: Option<&'a ToolName>,
    ) -> impl Iterator<Item = &'a ItemSchema> {
        self.list(category).iter().filter(move |schema| schema.is_about(tool))
    }

    fn judges(&self, category: ItemCategory, tool: Option<&ToolName>) -> bool {
        self.about(category, tool).next().is_some()
    }
}

fn item_of(item: &impl Serialize) -> Result<Json, MemoryError> {
    Json::of(item).map_err(|fault| MemoryError::failed(fault.to_string()))
}

/// A message of the application's own as an item.
#[derive(Serialize)]
struct CustomItem<'a> {
    #[serde(rename = "type")]
    item_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Json>,
}

/// A tool result as an item.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResultItem<'a> {
    #[serde(rename = "type")]
    item_type: &'static str,
    call_id: &'a CallId,
    name: &'a ToolName,
    output: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Json>,
}

/// Parts of an item that decide.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "type")]
    item_type: String,
    #[serde(default)]
    role: Option<Json>,
}

impl Head {
    fn of(item: &Json) -> Option<Self> {
        // An array of two would also be read as this struct.
        if !item.is_object() {
            return None;
        }
        item.to::<Self>().ok().filter(|head| !head.item_type.is_empty())
    }

    fn category(&self) -> Option<ItemCategory> {
        match self.item_type.as_str() {
            "message" if self.role.as_ref().is_some_and(|role| role.text() == "\"developer\"") => {
                Some(ItemCategory::DeveloperMessages)
            }
            "function_call" => Some(ItemCategory::ToolCalls),
            "function_call_output" => Some(ItemCategory::ToolResults),
            _ => None,
        }
    }
}

/// Whether every provider knows the type.
fn is_base_type(item_type: &str) -> bool {
    matches!(
        item_type,
        "message"
            | "function_call"
            | "function_call_output"
            | "reasoning"
            | "web_search_call"
            | "file_search_call"
            | "image_generation_call"
    ) || item_type.starts_with("openrouter:")
}

#[cfg(test)]
mod tests {
    use harness_core::message::{AssistantMessage, SystemMessage};

    use super::ItemCategory::{DeveloperMessages, Items, ToolCalls, ToolResults};
    use super::*;

    /// Whether a category that accepts nothing lets the message pass.
    #[track_caller]
    fn check(category: ItemCategory, message: &Message, passes: bool) {
        let never = ItemSchema::new("never", |_| false);
        let schemas = ItemSchemas::default().with(category, never);
        assert_eq!(schemas.check_message(message).is_ok(), passes, "{category}: {message:?}");
        assert_eq!(ItemSchemas::default().check_message(message), Ok(()), "without schemas base types pass");
    }

    #[test]
    fn fault_41_schemas_judge_every_kind_they_are_declared_for() {
        let system = Message::System(SystemMessage::text("be brief"));
        let call = ToolCall::new("c", "pay", Json::empty_object());
        let result = Message::ToolResult(ToolResultMessage::new(&call, vec![Block::text("done")], false));
        let call = Message::Assistant(AssistantMessage::calls([call]));
        for category in [Items, DeveloperMessages, ToolCalls, ToolResults] {
            check(category, &system, category != DeveloperMessages);
            check(category, &call, category != ToolCalls);
            check(category, &result, category != ToolResults);
            check(category, &Message::user("hello"), true);
        }
    }

    #[test]
    fn fault_41_schemas_see_the_item_of_a_message() {
        let pays = ItemSchema::new("payments", |item| item.text().contains(r#""name":"pay""#));
        let schemas = ItemSchemas::default().with(ItemCategory::ToolCalls, pays);
        let call = |name: &str| {
            Message::Assistant(AssistantMessage::calls([ToolCall::new("c", name, Json::empty_object())]))
        };
        assert_eq!(schemas.check_message(&call("pay")), Ok(()));
        assert!(schemas.check_message(&call("refund")).is_err());
    }

    #[test]
    fn schema_of_a_tool_says_nothing_about_others() {
        let never = ItemSchema::new("never", |_| false).of_tool("pay");
        let schemas = ItemSchemas::default().with(ToolCalls, never);
        let call = |name: &str| ToolCall::new("c", name, Json::empty_object());
        assert!(schemas.check_call(&call("pay")).is_err());
        assert_eq!(schemas.check_call(&call("refund")), Ok(()));
    }

    #[test]
    fn result_is_judged_with_its_exact_data() {
        let exact = ItemSchema::new("exact", |item| item.text().contains("12345678901234567890.10"));
        let schemas = ItemSchemas::default().with(ToolResults, exact);
        let call = ToolCall::new("c", "pay", Json::empty_object());
        let mut result = ToolResultMessage::new(&call, vec![Block::text("done")], false);
        result.structured = Some(Json::parse("12345678901234567890.10").unwrap());
        assert_eq!(schemas.check_message(&Message::ToolResult(result)), Ok(()));
    }
}
