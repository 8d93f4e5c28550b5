//! The client for TypeScript and JavaScript, generated from the description of the routes.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use expect_test::expect_file;
use serde_json::{Map, Value};

use crate::support::Desk;

/// Groups of operations in the client. The others belong to protocols with clients of their own.
const TAGS: [&str; 6] = ["threads", "runs", "queue", "events", "approvals", "service"];

const HEAD: &str = "// Client of `harness serve`, generated from its description. Do not edit.\n\n";

const CLASS: &str = "/** Error response of the server. */
export class HarnessError extends Error {
  /** HTTP status. */
  readonly status: number;
  /** Stable code. */
  readonly kind: string;
  /** Suggested fix. */
  readonly hint?: string;
  /** Path of the invalid field in the request body. */
  readonly path?: string;
}

/** A server. */
export interface HarnessOptions {
  /** URL of the server, for example `http://localhost:8787`. */
  url: string;
  /** Bearer token, if the server requires one. */
  token?: string;
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch;
}

/** Stops a request. */
export interface RequestOptions {
  signal?: AbortSignal;
}

/** Event of a thread with its number. */
export type NumberedEvent = ThreadEvent & { id?: number };

/** Client of one server. A newer server may send blocks, events and fields that these types do not have. Numbers beyond 2^53 lose digits, as in all of JavaScript. */
export class Harness {
  constructor(options: HarnessOptions);

  /**
   * Follows the events of a thread until the event `end`. A lost connection is opened again after the last event; after a restart
   * of the server, the event `reset` is first.
   */
  followThread(thread: string, options?: RequestOptions & {
    /** First event: `live` (default), `turn`, `replay` or a number. */
    from?: string | number;
    kind?: \"full\" | \"text\" | \"reasoning\" | \"items\";
    /** Ends the stream with the next run. */
    until?: \"run_end\";
    /** Last event that was received before. */
    lastEventId?: number;
    /** Time before the first attempt to connect again, in milliseconds. Doubles up to 30 s. Default: 1000. */
    retryMs?: number;
  }): AsyncGenerator<NumberedEvent, void, undefined>;
";

/// The description, and the types that are used.
struct Types {
    api: Value,
    used: BTreeSet<String>,
}

impl Types {
    /// The type of a schema.
    fn of(&mut self, schema: &Value) -> String {
        if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
            self.used.insert(name.to_owned());
            return match schema["properties"].as_object() {
                Some(fields) => format!("({name} & {})", self.object(fields, schema)),
                None => name.to_owned(),
            };
        }
        for key in ["oneOf", "anyOf"] {
            if let Some(choices) = schema[key].as_array() {
                let known = choices.iter().filter(|choice| !is_of_unknown_type(choice));
                return union(known.map(|choice| self.of(choice)));
            }
        }
        if let Some(values) = schema["enum"].as_array() {
            return union(values.iter().map(Value::to_string));
        }
        if schema["const"].is_string() {
            return schema["const"].to_string();
        }
        if let Some(names) = schema["type"].as_array() {
            return union(names.iter().map(|name| self.named(name.as_str().unwrap(), schema)));
        }
        schema["type"].as_str().map_or_else(|| "unknown".to_owned(), |name| self.named(name, schema))
    }

    fn named(&mut self, name: &str, schema: &Value) -> String {
        match name {
            "integer" | "number" => "number".to_owned(),
            "array" => self.array(schema),
            "object" => match (&schema["properties"], &schema["additionalProperties"]) {
                (Value::Object(fields), _) => self.object(fields, schema),
                (_, values @ Value::Object(_)) => format!("Record<string, {}>", self.of(values)),
                _ => "Record<string, unknown>".to_owned(),
            },
            other => other.to_owned(),
        }
    }

    fn array(&mut self, schema: &Value) -> String {
        if let Some(items) = schema["prefixItems"].as_array() {
            let items: Vec<String> = items.iter().map(|item| self.of(item)).collect();
            return format!("[{}]", items.join(", "));
        }
        let item = self.of(&schema["items"]);
        if item.contains(' ') { format!("({item})[]") } else { format!("{item}[]") }
    }

    /// An object type.
    fn object(&mut self, fields: &Map<String, Value>, schema: &Value) -> String {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let mut text = "{\n".to_owned();
        for (name, field) in fields {
            let kind = self.of(field);
            let optional = if required.contains(&Value::from(name.as_str())) { "" } else { "?" };
            writeln!(text, "{}  {}{optional}: {};", comment(field, 2), key(name), kind.replace('\n', "\n  "))
                .unwrap();
        }
        text + "}"
    }

    /// The declaration of a type.
    fn declaration(&mut self, name: &str) -> String {
        let schema = self.api["components"]["schemas"][name].clone();
        assert!(schema.is_object(), "{name} is described");
        let kind = match schema["properties"].as_object() {
            Some(fields) => self.object(fields, &schema),
            None => self.of(&schema),
        };
        format!("{}export type {name} = {kind};\n\n", comment(&schema, 0))
    }

    /// Declarations of all types that are used.
    fn declarations(&mut self) -> String {
        let (mut text, mut done) = (String::new(), BTreeSet::new());
        while let Some(name) = self.used.difference(&done).next().cloned() {
            text += &self.declaration(&name);
            done.insert(name);
        }
        text
    }

    /// The method of an operation.
    fn method(&mut self, operation: &Operation) -> String {
        let value = &operation.value;
        let parameters = value["parameters"].as_array().cloned().unwrap_or_default();
        let mut arguments: Vec<String> =
            path_names(&operation.path).iter().map(|name| format!("{name}: string")).collect();
        if let Some(body) = operation.body() {
            let optional = if value["requestBody"]["required"] == true { "" } else { "?" };
            arguments.push(format!("body{optional}: {}", union([self.of(body)].into_iter())));
        }
        let mut options = String::new();
        for parameter in parameters.iter().filter(|parameter| parameter["in"] != "path") {
            let name = parameter["name"].as_str().unwrap();
            let (name, kind) = match name {
                "If-Match" => ("ifMatch", "string".to_owned()),
                name => (name, self.of(&parameter["schema"])),
            };
            writeln!(options, "{}    {name}?: {kind};", comment(parameter, 4)).unwrap();
        }
        let options = if options.is_empty() { options } else { format!(" & {{\n{options}  }}") };
        arguments.push(format!("options?: RequestOptions{options}"));
        let responses = value["responses"].as_object().unwrap().iter();
        let results = responses.filter(|(status, _)| status.starts_with('2')).map(|(_, response)| {
            let content = response["content"].get("application/json");
            content.map_or_else(|| "undefined".to_owned(), |content| self.of(&content["schema"]))
        });
        let result = union(results);
        format!("\n{}  {}({}): Promise<{result}>;\n", comment(value, 2), operation.name, arguments.join(", "))
    }
}

/// An operation of the client.
struct Operation {
    name: String,
    method: String,
    path: String,
    value: Value,
}

impl Operation {
    fn body(&self) -> Option<&Value> {
        Some(&self.value["requestBody"]["content"]["application/json"]["schema"])
            .filter(|body| !body.is_null())
    }
}

fn operations(api: &Value) -> Vec<Operation> {
    let mut operations = Vec::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        for (method, value) in methods.as_object().unwrap() {
            let is_known = TAGS.iter().any(|tag| value["tags"][0] == *tag);
            let is_json = value["responses"]["200"]["content"]
                .as_object()
                .is_none_or(|content| content.contains_key("application/json"));
            if is_known && is_json {
                let name = value["operationId"].as_str().unwrap().to_owned();
                operations.push(Operation {
                    name,
                    method: method.to_uppercase(),
                    path: path.clone(),
                    value: value.clone(),
                });
            }
        }
    }
    operations.sort_by(|a, b| a.name.cmp(&b.name));
    operations
}

fn path_names(path: &str) -> Vec<&str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect()
}

/// Whether a choice stands for types that do not exist yet: with it, a compiler could not tell the others apart by `type`.
fn is_of_unknown_type(choice: &Value) -> bool {
    choice["properties"]["type"]["not"].is_object()
}

fn union(kinds: impl Iterator<Item = String>) -> String {
    let mut known: Vec<String> = Vec::new();
    for kind in kinds {
        if !known.contains(&kind) {
            known.push(kind);
        }
    }
    known.join(" | ")
}

fn key(name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_plain { name.to_owned() } else { format!("{name:?}") }
}

/// The first paragraph of a description, as a comment.
fn comment(value: &Value, indent: usize) -> String {
    let text = value["summary"].as_str().or(value["description"].as_str()).unwrap_or_default();
    // The schemas of events have no lines.
    let text = text.split("  ").next().unwrap_or_default();
    if text.is_empty() {
        return String::new();
    }
    let space = " ".repeat(indent);
    let text = text.replace("*/", "* /").replace('\n', &format!("\n{space} * "));
    format!("{space}/** {text} */\n")
}

/// The two files of the client.
fn client() -> (String, String) {
    let api: Value = serde_json::from_str(&harness_server::openapi()).unwrap();
    let operations = operations(&api);
    let mut types = Types { api, used: BTreeSet::from(["ThreadEvent".to_owned()]) };
    let methods: String = operations.iter().map(|operation| types.method(operation)).collect();
    let declarations = format!("{HEAD}{CLASS}{methods}}}\n\n{}", types.declarations().trim_end()) + "\n";
    let mut code = format!("{HEAD}// Method, path and whether there is a body.\nconst OPERATIONS = {{\n");
    for operation in &operations {
        let Operation { name, method, path, .. } = operation;
        writeln!(code, "  {name}: [{method:?}, {path:?}, {}],", operation.body().is_some()).unwrap();
    }
    code += "};\nconst FOLLOW = [\"GET\", \"/v1/threads/{thread}/events\", false];\n\n";
    (code + include_str!("../../src/client/runtime.js"), declarations)
}

#[tokio::test]
async fn the_client_is_current_and_served() {
    let (code, declarations) = client();
    expect_file!["../../src/client/client.js"].assert_eq(&code);
    expect_file!["../../src/client/client.d.ts"].assert_eq(&declarations);
    let server = Desk::new().serve().await;
    for (path, text) in [("/client.js", code), ("/client.d.ts", declarations)] {
        let request = server.client.request(reqwest::Method::GET, path);
        assert_eq!(request.send().await.unwrap().text().await.unwrap(), text);
    }
    server.end().await;
}
