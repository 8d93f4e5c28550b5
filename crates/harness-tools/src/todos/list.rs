//! A list of what is to be done, as data.

use harness_core::message::Message;
use serde::{Deserialize, Serialize};

/// How many items a list has at most, done ones included.
pub(super) const MOST_ITEMS: usize = 200;

/// How long a title, a description and a reason may be, in bytes.
const MOST_TITLE: usize = 500;
const MOST_TEXT: usize = 1_024;

/// The beginning of the names of all tools that tell a list.
pub(super) const PREFIX: &str = "todos_";

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Todo {
    /// Its number: 1, 2, 3 and so on in the order of adding. It stays the same, and no other item ever gets it.
    pub id: u64,
    /// What is to be done, in a few words.
    pub title: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it is done.
    pub is_complete: bool,
    /// Why it counts as done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A list of what is to be done: at most 200 items, with titles of 500 bytes, and 1 KiB of description and
/// reason each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TodoList {
    /// How many items were ever added.
    pub added: u64,
    /// The items, in the order of their numbers.
    pub items: Vec<Todo>,
}

impl TodoList {
    /// The items that are not done.
    pub fn remaining(&self) -> impl Iterator<Item = &Todo> {
        self.items.iter().filter(|todo| !todo.is_complete)
    }

    /// The list as it was when the last of some messages told it; `None` when none does.
    pub fn told_in<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Option<Self> {
        #[derive(Deserialize)]
        struct Told {
            list: TodoList,
        }
        let results = messages.into_iter().filter_map(Message::as_tool_result);
        let lists = results.filter(|result| result.tool_name.as_str().starts_with(PREFIX));
        let lists = lists.filter_map(|result| result.structured.as_ref()?.to::<Told>().ok());
        lists.last().map(|told| told.list)
    }

    pub(super) fn add(&mut self, title: String, description: Option<String>) -> Result<u64, String> {
        if title.trim().is_empty() {
            return Err("a title is empty; say in a few words what is to be done".to_owned());
        }
        fits("a title", &title, MOST_TITLE)?;
        description.iter().try_for_each(|text| fits("a description", text, MOST_TEXT))?;
        if self.items.len() >= MOST_ITEMS {
            return Err(format!(
                "the list holds {MOST_ITEMS} items at most; remove those that are not needed any more"
            ));
        }
        self.added += 1;
        self.items.push(Todo { id: self.added, title, description, is_complete: false, reason: None });
        Ok(self.added)
    }

    pub(super) fn complete(&mut self, id: u64, reason: Option<String>) -> Result<(), String> {
        reason.iter().try_for_each(|text| fits("a reason", text, MOST_TEXT))?;
        let known = self.known();
        let todo = self.items.iter_mut().find(|todo| todo.id == id).ok_or_else(|| unknown(id, &known))?;
        todo.is_complete = true;
        todo.reason = reason.or(todo.reason.take());
        Ok(())
    }

    pub(super) fn remove(&mut self, ids: &[u64]) -> Result<(), String> {
        let is_unknown = |id: &&u64| !self.items.iter().any(|todo| todo.id == **id);
        if let Some(id) = ids.iter().find(is_unknown) {
            return Err(unknown(*id, &self.known()));
        }
        self.items.retain(|todo| !ids.contains(&todo.id));
        Ok(())
    }

    /// The numbers that there are, for whoever named another one.
    fn known(&self) -> String {
        const SHOWN: usize = 20;
        let shown: Vec<String> = self.items.iter().take(SHOWN).map(|todo| todo.id.to_string()).collect();
        let more = if self.items.len() > SHOWN { " and others" } else { "" };
        format!("{}{more}", shown.join(", "))
    }
}

fn unknown(id: u64, known: &str) -> String {
    match known {
        "" => format!("there is no item {id}; the list is empty"),
        known => format!("there is no item {id}; there are {known}"),
    }
}

fn fits(what: &str, text: &str, most: usize) -> Result<(), String> {
    if text.len() > most {
        return Err(format!("{what} has {} bytes; at most {most} are kept", text.len()));
    }
    Ok(())
}
