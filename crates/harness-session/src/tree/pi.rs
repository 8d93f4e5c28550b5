//! Session trees of pi, versions 1 to 3, converted to session lines.

use std::collections::HashSet;

use harness_core::{Json, JsonObject, SessionId};

use crate::jsonl::{Header, Unreadable};

/// The newest version that is read.
const NEWEST: u64 = 3;

/// Reads the lines of one file in their order.
#[derive(Debug)]
pub(crate) struct Pi {
    version: u64,
    known: HashSet<String>,
    /// The ids of the lines, the header's place held by an empty one: version 1 counts lines.
    order: Vec<String>,
}

impl Pi {
    /// Starts with the first line; `None` if it is not a header of pi.
    pub(crate) fn begin(text: &[u8]) -> Option<Result<(Self, Header), Unreadable>> {
        let fields: JsonObject = serde_json::from_slice(text).ok()?;
        if fields.text("type")? != "session" || fields.get("format").is_some() {
            return None;
        }
        let version = fields.get("version").map_or(Some(1), |version| version.to().ok())?;
        if version == 0 || version > NEWEST {
            return Some(Err(Unreadable::Foreign(format!("a session tree of pi, version {version}"))));
        }
        let mut header = Header::new(SessionId::from(fields.text("id").unwrap_or_default()));
        header.created_at = fields.text("timestamp").unwrap_or_default();
        header.cwd = fields.text("cwd");
        header.parent_session = fields.text("parentSession");
        Some(Ok((Self { version, known: HashSet::new(), order: vec![String::new()] }, header)))
    }

    /// The version of the file.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// A line as ours would be.
    pub(crate) fn line(&mut self, text: &[u8]) -> Result<String, Unreadable> {
        let mut old: JsonObject = serde_json::from_slice(text)?;
        let kind = old.text("type").ok_or_else(|| damaged("it has no `type`"))?;
        old.take("type");
        let previous = self.order.last().filter(|id| !id.is_empty()).cloned();
        let parent = match (old.take("parentId"), self.version) {
            (None, 1) => previous,
            (parent, _) => parent.and_then(|id| id.to::<String>().ok()).filter(|id| self.known.contains(id)),
        };
        let id = match old.take("id").and_then(|id| id.to::<String>().ok()) {
            Some(id) => id,
            None => format!("e{}", self.order.len()),
        };
        let mut line = JsonObject::default();
        line.set("type", Json::string(&kind));
        line.set("id", Json::string(&id));
        line.set("parent_id", parent.map_or_else(Json::null, |parent| Json::string(&parent)));
        set_some(&mut line, "at", old.take("timestamp"));
        self.known.insert(id.clone());
        self.body(&kind, old, &mut line)?;
        self.order.push(id);
        serde_json::to_string(&line).map_err(Unreadable::from)
    }

    fn body(&self, kind: &str, mut old: JsonObject, line: &mut JsonObject) -> Result<(), Unreadable> {
        match kind {
            "message" => {
                let old = old.take("message").ok_or_else(|| damaged("it has no `message`"))?;
                line.set("message", message(old.to()?)?);
            }
            "custom_message" => {
                line.set("type", Json::string("message"));
                line.set("message", custom(old)?);
            }
            "compaction" => {
                let index = old.take("firstKeptEntryIndex").and_then(|index| index.to::<usize>().ok());
                let first = index.and_then(|index| self.order.get(index)).filter(|id| !id.is_empty());
                rename(&mut old, line, &[("summary", "summary")]);
                set_some(line, "first_kept_id", first.map(|id| Json::string(id)));
                rename(
                    &mut old,
                    line,
                    &[("firstKeptEntryId", "first_kept_id"), ("tokensBefore", "tokens_before")],
                );
                made_by(&mut old, line);
                line.extend(old);
            }
            "branch_summary" => {
                rename(&mut old, line, &[("fromId", "from_id"), ("summary", "summary")]);
                made_by(&mut old, line);
                line.extend(old);
            }
            "model_change" => {
                let mut model = JsonObject::default();
                rename(&mut old, &mut model, &[("provider", "provider"), ("modelId", "id")]);
                line.set("type", Json::string("config_change"));
                line.set("model", Json::of(&model)?);
                line.extend(old);
            }
            "thinking_level_change" => {
                line.set("type", Json::string("config_change"));
                rename(&mut old, line, &[("thinkingLevel", "thinking_level")]);
                line.extend(old);
            }
            "custom" | "label" => {
                rename(&mut old, line, &[("customType", "custom_type"), ("targetId", "target_id")]);
                line.extend(old);
            }
            _ => line.extend(old),
        }
        Ok(())
    }
}

fn damaged(what: &str) -> Unreadable {
    Unreadable::Damaged(what.to_owned())
}

/// Gives a key its value, when there is one.
fn set_some(object: &mut JsonObject, key: &str, value: Option<Json>) {
    if let Some(value) = value {
        object.set(key, value);
    }
}

fn rename(from: &mut JsonObject, to: &mut JsonObject, keys: &[(&str, &str)]) {
    for (old, new) in keys {
        set_some(to, new, from.take(old));
    }
}

/// Whether an extension made a summary.
fn made_by(old: &mut JsonObject, line: &mut JsonObject) {
    if old.take("fromHook").is_some_and(|hook| hook.text() == "true") {
        line.set("by", Json::string("hook"));
    }
}

/// A message as ours would be.
fn message(mut old: JsonObject) -> Result<Json, Unreadable> {
    let role = old.text("role").ok_or_else(|| damaged("the message has no `role`"))?;
    Ok(match &*role {
        "assistant" => {
            if let Some(protocol) = old.take("api") {
                old.set("protocol", protocol);
            }
            Json::of(&old)?
        }
        "custom" | "hookMessage" => {
            old.take("role");
            custom(old)?
        }
        "bashExecution" => {
            let text = |key| old.text(key).unwrap_or_default();
            let content = format!("$ {}\n{}", text("command"), text("output"));
            let hidden = old.get("excludeFromContext").is_some_and(|hidden| hidden.text() == "true");
            kept_as("bashExecution", &content, !hidden, &old)?
        }
        "branchSummary" | "compactionSummary" => {
            let summary = old.text("summary").unwrap_or_default();
            kept_as(&role, &format!("<summary>\n{summary}\n</summary>"), true, &old)?
        }
        _ => Json::of(&old)?,
    })
}

/// A message of a role that we do not have: its text, and all of it as data.
fn kept_as(kind: &str, content: &str, to_model: bool, old: &JsonObject) -> Result<Json, Unreadable> {
    let mut message = JsonObject::default();
    message.set("role", Json::string("custom"));
    message.set("customType", Json::string(kind));
    message.set("content", text_block(&Json::string(content))?);
    message.set("data", Json::of(old)?);
    message.set("toModel", Json::of(&to_model)?);
    set_some(&mut message, "timestamp", old.get("timestamp").cloned());
    Ok(Json::of(&message)?)
}

/// A message of an extension, which models are sent.
fn custom(mut old: JsonObject) -> Result<Json, Unreadable> {
    let mut message = JsonObject::default();
    message.set("role", Json::string("custom"));
    rename(&mut old, &mut message, &[("customType", "customType")]);
    if let Some(content) = old.take("content") {
        let text = content.text().starts_with('"');
        message.set("content", if text { text_block(&content)? } else { content });
    }
    rename(&mut old, &mut message, &[("display", "display"), ("details", "data")]);
    message.set("toModel", Json::of(&true)?);
    message.extend(old);
    Ok(Json::of(&message)?)
}

fn text_block(text: &Json) -> Result<Json, Unreadable> {
    Ok(Json::parse(&format!(r#"[{{"type":"text","text":{}}}]"#, text.text()))?)
}
