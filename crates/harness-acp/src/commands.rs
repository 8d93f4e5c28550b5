//! Slash commands for the editor.

use std::collections::HashSet;

use agent_client_protocol::v1::schema::{AvailableCommand, AvailableCommandInput, UnstructuredCommandInput};
use harness::runtime::ThreadConfig;

/// Maximum reported commands.
const MOST: usize = 200;

/// The templates as `/name`, and the skills as `/skill:name`, each name once.
pub(crate) fn of(config: &ThreadConfig) -> Vec<AvailableCommand> {
    let templates = config.templates.templates().iter().map(|template| {
        let hint = template.argument_hint.clone().or_else(|| {
            let takes_arguments = template.content.contains('$');
            takes_arguments.then(|| "arguments".to_owned())
        });
        command(template.name.clone(), &template.description, hint)
    });
    let skills = config.skills.skills().iter().map(|skill| {
        let hint = Some("what to do with it".to_owned());
        command(format!("skill:{}", skill.name), &skill.description, hint)
    });
    let mut seen = HashSet::new();
    templates.chain(skills).filter(|command| seen.insert(command.name.clone())).take(MOST).collect()
}

fn command(name: String, description: &str, hint: Option<String>) -> AvailableCommand {
    let input = hint.map(|hint| AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint)));
    AvailableCommand::new(name, description).input(input)
}
