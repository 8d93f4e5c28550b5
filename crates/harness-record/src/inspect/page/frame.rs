//! Frame of a page: head, policy, style, script and toolbar.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use crate::inspect::write::SafeText;

/// Style sheet of trace pages, for a server that shows their `main` element in a separate page.
pub const TRACE_STYLE: &str = include_str!("page.css");

/// Script of trace pages. After a change of the `main` element, dispatch the event `trace` on the document.
pub const TRACE_SCRIPT: &str = include_str!("page.js");

/// Keys of the page with their actions.
const KEYS: [(&str, &str); 8] = [
    ("/", "search"),
    ("j k", "next and previous step"),
    ("Enter", "open or close the step"),
    ("e c", "expand and collapse all"),
    ("g", "back to the top"),
    ("t", "switch the theme"),
    ("Esc", "clear the search"),
    ("?", "show the keys"),
];

/// Whole page around its content.
pub(super) fn page(title: &str, content: &Markup) -> String {
    let [style, script] = [TRACE_STYLE, TRACE_SCRIPT].map(|text| STANDARD.encode(Sha256::digest(text)));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; base-uri 'none'; form-action 'none'"
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                meta name="color-scheme" content="light dark";
                title { (SafeText(title)) }
                style { (PreEscaped(TRACE_STYLE)) }
            }
            body {
                main #top { (content) }
                script { (PreEscaped(TRACE_SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// Toolbar of the script, hidden without it.
pub(super) fn tools() -> Markup {
    html! {
        div #tools role="search" hidden {
            input #q type="search" placeholder="Search (press /)" aria-label="Search" autocomplete="off";
            span #hits.soft.small aria-live="polite" {}
            button #expand type="button" { "Expand all" }
            button #collapse type="button" { "Collapse all" }
            button #theme type="button" aria-label="Switch the theme" title="Switch the theme" { "◐" }
            details #keys {
                summary aria-label="Keys" title="Keys" { "?" }
                dl { @for (key, action) in KEYS { dt { kbd { (key) } } dd { (action) } } }
            }
        }
    }
}
