//! The OpenAPI description as a page.

use maud::{DOCTYPE, Markup, html};
use serde_json::Value;

/// Deepest level of fields that is shown.
const DEPTH: usize = 4;

/// Renders a description.
pub(super) fn page(description: &str) -> String {
    let api: Value = serde_json::from_str(description).unwrap_or_default();
    let operations = operations(&api);
    let mut tags: Vec<&str> = operations.iter().map(|operation| operation.tag).collect();
    tags.dedup();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "harness API" }
                link rel="stylesheet" href="ui/docs.css";
            }
            body {
                header {
                    h1 { "harness API " small { (text(api.at("info"), "version")) } }
                    p { (prose(text(api.at("info"), "description"))) }
                    p { a href="openapi.json" { "openapi.json" } " · " a href="./" { "Threads" } }
                    nav aria-label="Groups" { @for tag in &tags { a href={ "#" (tag) } { (tag) } " " } }
                }
                main {
                    @for tag in &tags {
                        section {
                            h2 id=(tag) { (tag) }
                            @for operation in operations.iter().filter(|operation| operation.tag == *tag) {
                                (operation.view(&api))
                            }
                        }
                    }
                }
            }
        }
    };
    page.into_string()
}

/// An operation of the description.
struct Operation<'a> {
    tag: &'a str,
    method: &'a str,
    path: &'a str,
    value: &'a Value,
}

fn operations(api: &Value) -> Vec<Operation<'_>> {
    let paths = api.at("paths").as_object().into_iter().flatten();
    let each =
        paths.flat_map(|(path, methods)| methods.as_object().into_iter().flatten().map(move |it| (path, it)));
    let mut operations: Vec<Operation<'_>> = each
        .map(|(path, (method, value))| Operation {
            tag: value.at("tags").at("0").as_str().unwrap_or("other"),
            method,
            path,
            value,
        })
        .collect();
    operations.sort_by_key(|operation| operation.tag);
    operations
}

impl Operation<'_> {
    fn view(&self, api: &Value) -> Markup {
        let body = &self.value.at("requestBody").at("content").at("application/json").at("schema");
        html! {
            details id=(text(self.value, "operationId")) {
                summary {
                    span class={ "method " (self.method) } { (self.method.to_uppercase()) } " "
                    code { (self.path) } " " span class="summary" { (prose(text(self.value, "summary"))) }
                }
                div class="body" {
                    @for paragraph in text(self.value, "description").split("\n\n").filter(|part| !part.is_empty()) {
                        p { (prose(paragraph)) }
                    }
                    @if let Some(parameters) = self.value.at("parameters").as_array() {
                        h3 { "Parameters" }
                        dl { @for parameter in parameters { (parameter_view(parameter)) } }
                    }
                    @if !body.is_null() { h3 { "Body" } (fields(api, body, 0)) }
                    h3 { "Responses" }
                    dl { @for (status, response) in self.value.at("responses").as_object().into_iter().flatten() {
                        (response_view(api, status, response))
                    } }
                }
            }
        }
    }
}

fn parameter_view(parameter: &Value) -> Markup {
    html! {
        dt { code { (text(parameter, "name")) } " " em { (kind(parameter.at("schema"))) " in " (text(parameter, "in")) } }
        dd { (prose(text(parameter, "description"))) }
    }
}

fn response_view(api: &Value, status: &str, response: &Value) -> Markup {
    let response = resolved(api, response);
    let schema = &response.at("content").at("application/json").at("schema");
    html! {
        dt { code { (status) } " " em { (kind(schema)) } }
        dd {
            (prose(text(response, "description")))
            @if status.starts_with('2') && !schema.is_null() { (fields(api, schema, 0)) }
        }
    }
}

/// Fields of an object, with those of objects in it.
fn fields(api: &Value, schema: &Value, depth: usize) -> Markup {
    let schema = object_of(api, schema);
    let required = |name: &str| {
        schema.at("required").as_array().is_some_and(|names| names.iter().any(|known| known == name))
    };
    html! {
        @if let Some(properties) = schema.at("properties").as_object().filter(|_| depth < DEPTH) {
            dl { @for (name, property) in properties {
                dt {
                    code { (name) } " " em { (kind(property)) @if required(name) { ", required" } }
                }
                dd { (prose(text(property, "description"))) (fields(api, property, depth + 1)) }
            } }
        }
    }
}

/// The object behind references, optional values and lists.
fn object_of<'a>(api: &'a Value, schema: &'a Value) -> &'a Value {
    let schema = resolved(api, schema);
    let choice = schema
        .at("oneOf")
        .as_array()
        .and_then(|choices| choices.iter().find(|choice| choice.at("type") != "null"));
    match (choice, schema.at("items")) {
        (Some(choice), _) => resolved(api, choice),
        (None, Value::Null) => schema,
        (None, items) => resolved(api, items),
    }
}

/// Name of a type.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema.at("$ref").as_str() {
        return name.rsplit('/').next().unwrap_or(name).to_owned();
    }
    if let Some(choices) = schema.at("oneOf").as_array() {
        return choices.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match &schema.at("type") {
        Value::String(name) if name == "array" => format!("list of {}", kind(schema.at("items"))),
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// Text with code between backticks.
fn prose(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn resolved<'a>(api: &'a Value, value: &'a Value) -> &'a Value {
    let pointer = value.at("$ref").as_str().and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| api.pointer(pointer)).unwrap_or(value)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.at(name).as_str().unwrap_or_default()
}

/// Access to parts of a description.
trait At {
    /// Field or entry of that name or number; `null` if there is none.
    fn at(&self, name: &str) -> &Value;
}

impl At for Value {
    fn at(&self, name: &str) -> &Value {
        let item = || name.parse::<usize>().ok().and_then(|index| self.get(index));
        self.get(name).or_else(item).unwrap_or(&Value::Null)
    }
}
