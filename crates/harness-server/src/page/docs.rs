//! The OpenAPI description as a page.

use maud::{DOCTYPE, Markup, html};
use serde_json::{Value, json};

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
                script type="module" src="ui/try.js" {}
            }
            body {
                header {
                    h1 { "harness API " small { (text(api.at("info"), "version")) } }
                    p { (prose(text(api.at("info"), "description"))) }
                    p { a href="openapi.json" { "openapi.json" } " · " a href="./" { "Threads" } }
                    nav aria-label="Groups" { @for tag in &tags { a href={ "#" (tag) } { (tag) } " " } a href="#types" { "types" } }
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
                    section {
                        h2 id="types" { "types" }
                        @for (name, schema) in unions(&api) { (union_view(&api, name, schema)) }
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
    /// Names and places of the parameters as JSON text.
    fn parameters(&self) -> String {
        let parameters = self.value.at("parameters").as_array().into_iter().flatten();
        let pairs = parameters.map(|parameter| json!([parameter.at("name"), parameter.at("in")]));
        pairs.collect::<Value>().to_string()
    }

    fn view(&self, api: &Value) -> Markup {
        let body = &self.value.at("requestBody").at("content").at("application/json").at("schema");
        html! {
            details id=(text(self.value, "operationId")) data-method=(self.method.to_uppercase()) data-path=(self.path)
                data-parameters=(self.parameters()) data-body=[body_text(api, body)] {
                summary {
                    span class={ "method " (self.method) } { (self.method.to_uppercase()) } " "
                    code { (self.path) } " " span class="summary" { (prose(text(self.value, "summary"))) }
                }
                div class="body" {
                    @for paragraph in text(self.value, "description").split("\n\n").filter(|part| !part.is_empty()) {
                        (paragraph_view(paragraph))
                    }
                    @if let Some(parameters) = self.value.at("parameters").as_array() {
                        h3 { "Parameters" }
                        dl { @for parameter in parameters { (parameter_view(api, parameter)) } }
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

/// A body to start from: the required fields and those with examples, as JSON text; `None` if there is no body.
fn body_text(api: &Value, schema: &Value) -> Option<String> {
    let body = (!schema.is_null()).then(|| example(api, schema, 0))?;
    serde_json::to_string_pretty(&body).ok()
}

/// A value to start from.
fn example(api: &Value, schema: &Value, depth: usize) -> Value {
    let given = schema.at("example");
    if !given.is_null() || depth > DEPTH {
        return given.clone();
    }
    let schema = object_of(api, schema);
    let required = schema.at("required").as_array().map_or(&[][..], Vec::as_slice);
    let named = |(name, field): &(&String, &Value)| {
        !field.at("example").is_null() || required.iter().any(|known| known == name.as_str())
    };
    if let Some(fields) = schema.at("properties").as_object() {
        let fields = fields.iter().filter(named);
        return fields.map(|(name, field)| (name.clone(), example(api, field, depth + 1))).collect();
    }
    let first = schema.at("enum").at("0");
    match schema.at("type").as_str() {
        _ if !first.is_null() => first.clone(),
        Some("boolean") => Value::Bool(false),
        Some("integer" | "number") => Value::from(0),
        Some("array") => json!([example(api, schema.at("items"), depth + 1)]),
        Some("object") => json!({}),
        _ => Value::from(""),
    }
}

/// A paragraph of a description, or a list.
fn paragraph_view(text: &str) -> Markup {
    html! {
        @if let Some(items) = text.strip_prefix("- ") {
            ul { @for item in items.split("\n- ") { li { (prose(item)) } } }
        } @else {
            p { (prose(text)) }
        }
    }
}

fn parameter_view(api: &Value, parameter: &Value) -> Markup {
    html! {
        dt { code { (text(parameter, "name")) } " " em { (kind(api, parameter.at("schema"))) " in " (text(parameter, "in")) } }
        dd { (prose(text(parameter, "description"))) }
    }
}

fn response_view(api: &Value, status: &str, response: &Value) -> Markup {
    let response = resolved(api, response);
    let content = response.at("content").as_object().and_then(|content| content.values().next());
    let schema = content.map_or(&Value::Null, |content| content.at("schema"));
    html! {
        dt { code { (status) } " " em { (kind(api, schema)) } }
        dd {
            (prose(text(response, "description")))
            @if status.starts_with('2') && !schema.is_null() { (fields(api, schema, 0)) }
        }
    }
}

/// Components that are one of several types, by name. Everything else is shown where it is used.
fn unions(api: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let schemas = api.at("components").at("schemas").as_object().into_iter().flatten();
    schemas.filter(|(_, schema)| is_union(schema))
}

/// Whether a schema is one of several objects.
fn is_union(schema: &Value) -> bool {
    let choices = schema.at("oneOf").as_array().into_iter().flatten();
    choices.filter(|choice| choice.at("properties").is_object()).nth(1).is_some()
}

fn union_view(api: &Value, name: &str, schema: &Value) -> Markup {
    html! {
        details id={ "type-" (name) } {
            summary { code { (name) } " " span class="summary" { (prose(text(schema, "description"))) } }
            div class="body" {
                @for choice in schema.at("oneOf").as_array().into_iter().flatten() {
                    h3 { (tag(choice)) }
                    p { (prose(text(choice, "description"))) }
                    (fields(api, choice, 1))
                }
            }
        }
    }
}

/// The field that distinguishes a choice from the others.
fn tag(choice: &Value) -> Markup {
    let fields = choice.at("properties").as_object().into_iter().flatten();
    let tags = fields.filter_map(|(name, field)| Some((name, field.at("const").as_str()?)));
    html! { @for (name, value) in tags { code { (name) ": " (value) } " " } }
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
                    code { (name) } " " em { (kind(api, property)) @if required(name) { ", required" } }
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
        _ if is_union(schema) => &Value::Null,
        (Some(choice), _) => resolved(api, choice),
        (None, Value::Null) => schema,
        (None, items) => resolved(api, items),
    }
}

/// Name of a type. That of a union is a link to it.
fn kind(api: &Value, schema: &Value) -> Markup {
    if let Some(name) = schema.at("$ref").as_str().and_then(|name| name.rsplit('/').next()) {
        return html! {
            @if is_union(resolved(api, schema)) { a href={ "#type-" (name) } { (name) } } @else { (name) }
        };
    }
    if let Some(choices) = schema.at("oneOf").as_array() {
        return html! {
            @for (index, choice) in choices.iter().enumerate() { @if index > 0 { " or " } (kind(api, choice)) }
        };
    }
    if let Some(value) = schema.at("const").as_str() {
        return html! { (value) };
    }
    let items = schema.at("items");
    html! {
        @match schema.at("type") {
            Value::String(name) if name == "array" => { "list of " (kind(api, items)) }
            Value::String(name) => (name),
            Value::Array(names) => {
                (names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "))
                @if !items.is_null() { " of " (kind(api, items)) }
            }
            _ if schema.is_object() => "any value",
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
        }
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
