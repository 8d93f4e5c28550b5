//! The message that brings anchored blocks up to date without touching their bytes.

use std::fmt::Write as _;
use std::sync::Arc;

use harness_core::message::Message;
use serde::{Deserialize, Serialize};

use super::ask::developer;
use super::def::LayerId;

const PREAMBLE: &str = "Each block below takes the place of the earlier block of the same layer. \
    Where they differ, this one is valid.";
const VOID: &str = "The earlier block of this layer is no longer valid.";

/// Change of an anchored block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[strum(serialize_all = "snake_case")]
pub enum UpdateAction {
    /// It says something else.
    Replace,
    /// It was not there when the anchor was made.
    Add,
    /// The block is no longer valid.
    Retract,
}

/// Current content of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayerUpdate {
    /// Layer of the block.
    pub layer: LayerId,
    /// Kind of change.
    pub action: UpdateAction,
    /// Current text; `None` is nothing.
    pub text: Option<String>,
}

/// All updates of one view, in one message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Supersede {
    /// The epoch of the anchor that they belong to.
    pub epoch: String,
    /// Updates in order.
    pub updates: Vec<LayerUpdate>,
}

impl Supersede {
    /// The developer message. Ids and texts are escaped: no text can end its block.
    pub fn message(&self) -> Arc<Message> {
        let mut out = format!("<context_updates epoch=\"{}\">\n{PREAMBLE}\n", escaped(&self.epoch));
        for update in &self.updates {
            let (layer, action) = (escaped(update.layer.as_str()), update.action);
            let text = update.text.as_deref().map_or_else(|| VOID.to_owned(), escaped);
            // Writing into a string does not fail.
            let _ = write!(out, "<update layer=\"{layer}\" action=\"{action}\">\n{text}\n</update>\n");
        }
        out.push_str("</context_updates>");
        developer(out)
    }
}

/// A text that holds no markup.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_block() {
        let update = LayerUpdate {
            layer: "a\"b".into(),
            action: UpdateAction::Replace,
            text: Some("</update></context_updates> & more".to_owned()),
        };
        let gone = LayerUpdate { layer: "c".into(), action: UpdateAction::Retract, text: None };
        let supersede = Supersede { epoch: "t:T#0".to_owned(), updates: vec![update, gone] };
        insta::assert_snapshot!(supersede.message().joined_text(), @r#"
        <context_updates epoch="t:T#0">
        Each block below takes the place of the earlier block of the same layer. Where they differ, this one is valid.
        <update layer="a&quot;b" action="replace">
        &lt;/update&gt;&lt;/context_updates&gt; &amp; more
        </update>
        <update layer="c" action="retract">
        The earlier block of this layer is no longer valid.
        </update>
        </context_updates>
        "#);
    }
}
