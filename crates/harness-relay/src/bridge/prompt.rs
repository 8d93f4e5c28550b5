//! A request as the prompt of a command-line program.

use harness_core::{Json, JsonObject};

/// Everything that the request says, in one text: system prompt, developer prompt, context, the
/// continuation, tools, attachments, the requested form, and last the message.
///
/// A request with nothing but a system prompt and a message gives those two (W49).
pub(super) fn prompt(request: &Json) -> String {
    let request = JsonObject::of(request).unwrap_or_default();
    let instructions = request.object("instructions").unwrap_or_default();
    let message = request.object("message").unwrap_or_default();
    let mut parts = Vec::new();
    parts.extend(filled(&instructions, "systemPrompt"));
    parts.extend(filled(&instructions, "developerPrompt"));
    parts.extend(context(&request));
    parts.extend(continuation(&request));
    parts.extend(tools(&request));
    parts.extend(attachments(&message));
    parts.extend(style(&instructions));
    parts.extend(filled(&message, "text"));
    parts.join("\n\n")
}

/// The text of a key unless it is empty.
fn filled(object: &JsonObject, key: &str) -> Option<String> {
    object.text(key).filter(|text| !text.is_empty())
}

fn context(request: &JsonObject) -> Vec<String> {
    let Some(context) = request.object("context") else { return Vec::new() };
    let blocks = context.objects("blocks");
    let blocks = blocks.iter().filter_map(|block| {
        let text = filled(block, "text")?;
        let label = block.filled_text("label").or_else(|| block.filled_text("id"))?;
        Some(format!("Context, {label}:\n{text}"))
    });
    let data = context.object("structured").filter(|data| !data.is_empty());
    let data = data.map(|data| format!("Context as data:\n{}", data.json()));
    blocks.chain(data).collect()
}

fn continuation(request: &JsonObject) -> Option<String> {
    let continuation = request.object("continuation").filter(|all| !all.is_empty())?;
    Some(format!("This continues:\n{}", continuation.json()))
}

fn tools(request: &JsonObject) -> Option<String> {
    let tools: Vec<_> = request.objects("tools").iter().filter_map(tool).collect();
    (!tools.is_empty()).then(|| format!("Tools that may be used:\n{}", tools.join("\n")))
}

fn tool(tool: &JsonObject) -> Option<String> {
    let mut line = format!("- {}", tool.filled_text("name")?);
    if let Some(description) = tool.filled_text("description") {
        line = format!("{line}: {description}");
    }
    if tool.get("requiresApproval").is_some_and(|flag| flag.text() == "true") {
        line.push_str(" (only with approval)");
    }
    if let Some(schema) = tool.object("inputSchema").filter(|schema| !schema.is_empty()) {
        line = format!("{line}\n  arguments: {}", schema.json());
    }
    Some(line)
}

fn attachments(message: &JsonObject) -> Option<String> {
    let attachments = message.objects("attachments");
    let lines: Vec<_> = attachments
        .iter()
        .filter_map(|one| {
            let name = one.filled_text("name").or_else(|| one.filled_text("id"))?;
            let parts = [Some(name), one.filled_text("type"), one.filled_text("url")];
            Some(format!("- {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", ")))
        })
        .collect();
    (!lines.is_empty()).then(|| format!("Attachments:\n{}", lines.join("\n")))
}

fn style(instructions: &JsonObject) -> Option<String> {
    let style = instructions.object("responseStyle")?;
    let markdown = match style.get("preferMarkdown").map(Json::text) {
        Some("true") => Some("Answer in Markdown.".to_owned()),
        Some("false") => Some("Answer in plain text, not in Markdown.".to_owned()),
        Some(_) | None => None,
    };
    let longest = style.get("maxAnswerChars").and_then(|count| count.to::<u64>().ok());
    let longest = longest.map(|count| format!("Use at most {count} characters."));
    let lines: Vec<_> = markdown.into_iter().chain(longest).collect();
    (!lines.is_empty()).then(|| lines.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(request: &str, expected: &str) {
        assert_eq!(prompt(&Json::parse(request).unwrap()), expected);
    }

    #[test]
    fn system_prompt_and_message_are_as_in_the_source() {
        check(r#"{"instructions":{"systemPrompt":"S"},"message":{"text":"Q?"}}"#, "S\n\nQ?");
        check(r#"{"instructions":{},"message":{"text":"Q?"}}"#, "Q?");
        check(r#"{"instructions":{"systemPrompt":"S"},"message":{"text":""}}"#, "S");
        check("{}", "");
        check("[1]", "");
        check(r#"{"instructions":{"systemPrompt":1},"message":"x"}"#, "");
    }

    #[test]
    fn w49_everything_else_is_forwarded() {
        check(
            r#"{"instructions":{"systemPrompt":"S","developerPrompt":"D","responseStyle":{"preferMarkdown":false,"maxAnswerChars":80}},
                "context":{"blocks":[{"id":"b","label":"Notes","text":"N"},{"id":"e","label":"E","text":""}],"structured":{"k":1.50}},
                "continuation":{"kind":"deferred","state":{"at":2}},
                "tools":[{"name":"add","description":"Adds","inputSchema":{"type":"object"},"requiresApproval":true},{"name":"sub"}],
                "message":{"text":"Q?","attachments":[{"id":"a1","type":"image/png","name":"plan.png","url":"https://h/plan.png"}]}}"#,
            "S\n\nD\n\nContext, Notes:\nN\n\nContext as data:\n{\"k\":1.50}\n\nThis continues:\n\
             {\"kind\":\"deferred\",\"state\":{\"at\":2}}\n\nTools that may be used:\n- add: Adds (only with approval)\n  \
             arguments: {\"type\":\"object\"}\n- sub\n\nAttachments:\n- plan.png, image/png, https://h/plan.png\n\n\
             Answer in plain text, not in Markdown. Use at most 80 characters.\n\nQ?",
        );
    }
}
