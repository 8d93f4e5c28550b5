//! Available API keys and their sources, never their values.

use super::finding::{Area, Finding, Status};
use crate::error::CliError;
use crate::model::keys::{Keys, Origin};
use crate::model::providers::{PROVIDERS, Provider};

/// One finding for each hosted provider.
pub(super) fn findings(keys: &Keys) -> Vec<Finding> {
    PROVIDERS.iter().filter(|provider| !provider.local).map(|provider| finding(keys, provider)).collect()
}

fn finding(keys: &Keys, provider: &Provider) -> Finding {
    let Provider { name, title, key_name, .. } = provider;
    match keys.of(provider).map(|key| key.origin) {
        Some(Origin::Environment(variable)) => {
            Finding::new(Area::Keys, name, Status::Ok, format!("{title}: API key in {variable}"))
        }
        Some(Origin::File(path)) => {
            Finding::new(Area::Keys, name, Status::Ok, format!("{title}: API key in {}", path.display()))
        }
        None => {
            let file = Keys::usual().map(|path| format!(", or add it to {}", path.display()));
            let fix = format!("set {key_name}{}", file.unwrap_or_default());
            Finding::new(Area::Keys, name, Status::Absent, format!("{title}: no API key")).fix(fix)
        }
    }
}

/// An error in the key file.
pub(super) fn unreadable(fault: &CliError) -> Finding {
    let finding = Finding::new(Area::Keys, "key_file", Status::Fault, fault.to_string());
    match fault.hint() {
        Some(hint) => finding.fix(hint),
        None => finding,
    }
}
