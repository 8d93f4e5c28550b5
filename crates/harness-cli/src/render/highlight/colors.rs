//! Styles of the parts of a language.

use std::sync::LazyLock;

use anstyle::{AnsiColor, Style};
use syntect::parsing::Scope;

use crate::render::{BAD, BOLD, DIM, GOOD};

/// Styles by the start of a scope. The innermost scope with a style decides, and of several starts the first.
static STYLES: LazyLock<Vec<(Scope, Style)>> = LazyLock::new(|| {
    let plain = Style::new();
    let keyword = AnsiColor::Magenta.on_default();
    let value = AnsiColor::Cyan.on_default();
    let key = key_style();
    let (dim, bold, good, bad) = (DIM.style(), BOLD.style(), GOOD.style(), BAD.style());
    let styles = [
        ("comment", dim),
        ("string", good),
        ("constant", value),
        ("keyword.operator", plain),
        ("keyword", keyword),
        ("storage", keyword),
        ("variable.language", keyword),
        ("entity.name.tag", key),
        ("entity.other.attribute-name", value),
        ("entity.name", bold),
        ("meta.diff.range", value),
        ("meta.diff.header", bold),
        ("markup.inserted", good),
        ("markup.deleted", bad),
        ("markup.heading", bold),
        ("markup.bold", bold),
        ("meta.interpolation", plain),
        ("source", plain),
    ];
    let scoped = |(name, style): (&str, Style)| Some((Scope::new(name).ok()?, style));
    styles.into_iter().filter_map(scoped).collect()
});

/// Scope around a string that is a key of an object.
static KEY: LazyLock<Option<Scope>> = LazyLock::new(|| Scope::new("meta.mapping.key").ok());

/// The style of a text in these scopes, the outermost first.
pub(super) fn style(scopes: &[Scope]) -> Style {
    if scopes.iter().any(|scope| KEY.is_some_and(|key| key.is_prefix_of(*scope))) {
        return key_style();
    }
    let of =
        |scope: &Scope| STYLES.iter().find(|(start, _)| start.is_prefix_of(*scope)).map(|(_, style)| *style);
    scopes.iter().rev().find_map(of).unwrap_or_default()
}

/// Style of keys and of names of elements.
const fn key_style() -> Style {
    AnsiColor::Blue.on_default()
}
