//! Model settings, which are passed to the model's adapter as they are.

use harness_diagnostics::document::{Entry, Kind, NodeId};
use harness_diagnostics::suggest::did_you_mean;

use super::finder::Finder;

/// Accepted values of a setting.
#[derive(Clone, Copy)]
enum Takes {
    Number,
    Whole,
    Flag,
    Text,
    List,
    Mapping,
    Anything,
}

/// The settings that chat models are known to take.
const KNOWN: &[(&str, Takes)] = &[
    ("frequency_penalty", Takes::Number),
    ("include_reasoning", Takes::Flag),
    ("logit_bias", Takes::Mapping),
    ("logprobs", Takes::Flag),
    ("max_completion_tokens", Takes::Whole),
    ("max_tokens", Takes::Whole),
    ("metadata", Takes::Mapping),
    ("min_p", Takes::Number),
    ("modalities", Takes::List),
    ("models", Takes::List),
    ("parallel_tool_calls", Takes::Flag),
    ("plugins", Takes::List),
    ("presence_penalty", Takes::Number),
    ("prompt_cache_key", Takes::Text),
    ("provider", Takes::Mapping),
    ("reasoning", Takes::Mapping),
    ("reasoning_effort", Takes::Text),
    ("repetition_penalty", Takes::Number),
    ("response_format", Takes::Mapping),
    ("route", Takes::Text),
    ("seed", Takes::Whole),
    ("service_tier", Takes::Text),
    ("stop", Takes::Anything),
    ("store", Takes::Flag),
    ("temperature", Takes::Number),
    ("tool_choice", Takes::Anything),
    ("top_a", Takes::Number),
    ("top_k", Takes::Whole),
    ("top_logprobs", Takes::Whole),
    ("top_p", Takes::Number),
    ("transforms", Takes::List),
    ("usage", Takes::Mapping),
    ("user", Takes::Text),
    ("verbosity", Takes::Text),
];

/// Keys of a request that the adapter writes itself and refuses as settings.
const RESERVED: &[&str] = &["messages", "model", "n", "stream", "stream_options", "tools"];

pub(super) fn check(finder: &mut Finder<'_>) {
    for owner in finder.owners() {
        let Some(settings) = finder.present(owner, "modelSettings") else { continue };
        let Kind::Map(entries) = finder.document.kind(settings) else {
            let found = finder.document.kind(settings).name();
            let message = format!("modelSettings takes a mapping, not {found}");
            finder.push(finder.at("lint.setting_type", message, settings));
            continue;
        };
        for entry in entries {
            setting(finder, entry);
        }
    }
}

fn setting(finder: &mut Finder<'_>, entry: &Entry) {
    let document = finder.document;
    let key = document.resolve(&entry.key);
    if RESERVED.contains(&key) {
        let message = format!("adapters write `{key}` themselves and refuse it as a setting");
        let warning = finder.at_key("lint.reserved_setting", message, entry);
        let hint = if key == "model" { "set `model` beside `modelSettings`" } else { "remove it" };
        finder.push(warning.hint(hint));
        return;
    }
    let Some((_, takes)) = KNOWN.iter().find(|(known, _)| *known == key) else {
        let message = format!("unknown model setting `{key}`; it is sent unchanged");
        let warning = finder.at_key("lint.unknown_setting", message, entry);
        let near = did_you_mean(key, KNOWN.iter().map(|(known, _)| *known));
        finder.push(
            warning.hint(near.unwrap_or_else(|| "keep it if your model's provider documents it".to_owned())),
        );
        return;
    };
    if !takes.fits(finder, entry.value) {
        let found = finder.kind_name(entry.value);
        let message = format!("setting `{key}` takes {}, not {found}", takes.name());
        finder.push(finder.at("lint.setting_type", message, entry.value));
    }
}

impl Takes {
    fn fits(self, finder: &Finder<'_>, value: NodeId) -> bool {
        match (self, finder.document.kind(value)) {
            (_, Kind::Null) | (Self::Anything, _) => true,
            (Self::Number, Kind::Number(_)) | (Self::Flag, Kind::Bool(_)) => true,
            (Self::Whole, Kind::Number(number)) => number.fract() == 0.0,
            (Self::Text, Kind::Text(_)) | (Self::List, Kind::List(_)) | (Self::Mapping, Kind::Map(_)) => true,
            _ => false,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Number => "a number",
            Self::Whole => "a whole number",
            Self::Flag => "`true` or `false`",
            Self::Text => "a string",
            Self::List => "a list",
            Self::Mapping => "a mapping",
            Self::Anything => "any value",
        }
    }
}
