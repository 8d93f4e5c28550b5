//! Conversion of arguments to the types of a schema.

use serde_json::Value;

use super::schema::{Fits, types_of};
use crate::json::Json;

/// Maximum number of visited values, including those of tried variants.
const MOST_VALUES: u32 = 10_000;

/// Maximum depth of a value.
const DEEPEST: u32 = 64;

/// Converts scalars of the arguments to the types that `schema` declares, where that is lossless. `None` if nothing
/// changes, or if the arguments or the schema are too large or too deep (10,000 values, 64 levels).
///
/// | declared | converted |
/// |---|---|
/// | `number` | a string that is a JSON number, digit by digit; `true` to 1, `false` to 0 |
/// | `integer` | as `number`, if it is whole (`"3"`, `"3.0"`) |
/// | `boolean` | `"true"`, `"false"`, 1, 0 |
/// | `string` | a number as it is written, `true`, `false` |
/// | `null` | `""`, 0, `false` |
///
/// `null` is never converted: a missing argument must not become a value. A value of one of several declared types is
/// unchanged; otherwise the first possible type counts. A value that fits a variant of `anyOf` or `oneOf` is unchanged;
/// otherwise it is converted to fit the first possible variant. Objects and lists are visited (`properties`,
/// `additionalProperties`, `items`, `prefixItems`, `allOf`, `$ref` inside of the schema).
///
/// ```
/// use harness_core::Json;
/// use harness_core::tool::coerced;
///
/// let schema = Json::parse(r#"{"properties":{"n":{"type":"integer"},"unit":{"type":"string"}}}"#)?;
/// let arguments = Json::parse(r#"{"n":"3","unit":"cm"}"#)?;
/// assert_eq!(coerced(&schema, &arguments), Some(Json::parse(r#"{"n":3,"unit":"cm"}"#)?));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn coerced(schema: &Json, arguments: &Json) -> Option<Json> {
    let root: Value = schema.to().ok()?;
    let mut coercion = Coercion { fits: Fits::new(&root, MOST_VALUES) };
    coercion.value(&root, arguments, DEEPEST)
}

/// Conversion of one call's arguments.
struct Coercion<'s> {
    fits: Fits<'s>,
}

impl<'s> Coercion<'s> {
    /// Converts a value; `None` if it is unchanged.
    fn value(&mut self, schema: &'s Value, value: &Json, deep: u32) -> Option<Json> {
        let deep = self.fits.enter(deep)?;
        let mut now: Option<Json> = None;
        if let Some(target) = self.fits.referred(schema) {
            now = self.value(target, value, deep);
        }
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            now = self.value(part, now.as_ref().unwrap_or(value), deep).or(now);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(variants) = schema.get(key).and_then(Value::as_array) {
                now = self.variant(variants, now.as_ref().unwrap_or(value), deep).or(now);
            }
        }
        now = typed(schema, now.as_ref().unwrap_or(value)).or(now);
        self.inside(schema, now.as_ref().unwrap_or(value), deep).or(now).filter(|_| !self.fits.is_spent())
    }

    /// Converts a value to fit the first possible variant, unless it fits one.
    fn variant(&mut self, variants: &'s [Value], value: &Json, deep: u32) -> Option<Json> {
        let fits = |this: &mut Self, variant, value: &Json| {
            value.to().is_ok_and(|data: Value| this.fits.check(variant, &data, deep))
        };
        if variants.iter().any(|variant| fits(self, variant, value)) {
            return None;
        }
        variants.iter().find_map(|variant| {
            let made = self.value(variant, value, deep)?;
            fits(self, variant, &made).then_some(made)
        })
    }

    /// Converts the values inside of an object or a list.
    fn inside(&mut self, schema: &'s Value, value: &Json, deep: u32) -> Option<Json> {
        match value.text().bytes().next() {
            Some(b'{') => self.object(schema, value, deep),
            Some(b'[') => self.list(schema, value, deep),
            _ => None,
        }
    }

    fn object(&mut self, schema: &'s Value, value: &Json, deep: u32) -> Option<Json> {
        let properties = schema.get("properties");
        let others = schema.get("additionalProperties").filter(|others| others.is_object());
        if properties.is_none() && others.is_none() {
            return None;
        }
        let mut entries = value.entries().ok()?;
        let mut changed = false;
        for (key, value) in &mut entries {
            let declared = properties.and_then(|properties| properties.get(key.as_str())).or(others);
            if let Some(made) = declared.and_then(|schema| self.value(schema, value, deep)) {
                (*value, changed) = (made, true);
            }
        }
        changed.then(|| Json::object(entries))
    }

    fn list(&mut self, schema: &'s Value, value: &Json, deep: u32) -> Option<Json> {
        let items = schema.get("items");
        let first = schema.get("prefixItems").or(items).and_then(Value::as_array);
        let rest = items.filter(|items| items.is_object());
        if first.is_none() && rest.is_none() {
            return None;
        }
        let mut values: Vec<Json> = value.to().ok()?;
        let mut changed = false;
        for (at, value) in values.iter_mut().enumerate() {
            let declared = first.and_then(|first| first.get(at)).or(rest);
            if let Some(made) = declared.and_then(|schema| self.value(schema, value, deep)) {
                (*value, changed) = (made, true);
            }
        }
        changed.then(|| Json::of(&values).ok()).flatten()
    }
}

/// Converts a scalar to the first declared type that it can take; `None` if it already has one of them.
fn typed(schema: &Value, value: &Json) -> Option<Json> {
    if types_of(schema).any(|name| is_of(name, value)) {
        return None;
    }
    types_of(schema).find_map(|name| scalar(name, value))
}

fn is_of(name: &str, value: &Json) -> bool {
    let text = value.text();
    match (name, text.bytes().next()) {
        ("object", Some(b'{')) | ("array", Some(b'[')) | ("string", Some(b'"')) => true,
        ("boolean", Some(b't' | b'f')) | ("null", Some(b'n')) => true,
        ("number", Some(b'-' | b'0'..=b'9')) => true,
        ("integer", Some(b'-' | b'0'..=b'9')) => whole(text).is_some(),
        _ => false,
    }
}

fn scalar(name: &str, value: &Json) -> Option<Json> {
    let text = value.text();
    let string: Option<String> = text.starts_with('"').then(|| value.to().ok()).flatten();
    let made = match (name, string.as_deref(), text) {
        ("number", Some(string), _) if is_number(string) => string.to_owned(),
        ("integer", Some(string), _) if is_number(string) => whole(string)?,
        ("number" | "integer", None, "true") => "1".to_owned(),
        ("number" | "integer", None, "false") => "0".to_owned(),
        ("boolean", Some(string @ ("true" | "false")), _) => string.to_owned(),
        ("boolean", None, "1") => "true".to_owned(),
        ("boolean", None, "0") => "false".to_owned(),
        ("null", Some(""), _) | ("null", None, "0" | "false") => "null".to_owned(),
        ("string", None, "true" | "false") => return Some(Json::string(text)),
        ("string", None, number) if is_number(number) => return Some(Json::string(number)),
        _ => return None,
    };
    Json::parse(&made).ok()
}

/// Whether a text is exactly one JSON number.
fn is_number(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let ends = text.ends_with(|c: char| c.is_ascii_digit());
    begins && ends && Json::parse(text).is_ok()
}

/// Returns the digits of a whole JSON number; `None` if it is not whole, or has more than 400 digits.
fn whole(number: &str) -> Option<String> {
    const MOST_DIGITS: usize = 400;
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (before, behind) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let point = i64::try_from(before.len()).ok()?.checked_add(exponent.parse().ok()?)?;
    let digits = format!("{before}{behind}");
    let point = usize::try_from(point.max(0)).ok()?;
    let is_whole = digits.bytes().skip(point).all(|digit| digit == b'0');
    if !is_whole || point.max(digits.len()) > MOST_DIGITS {
        return None;
    }
    let padding = std::iter::repeat_n('0', point.saturating_sub(digits.len()));
    let digits: String = digits.chars().take(point).chain(padding).collect();
    match digits.trim_start_matches('0') {
        "" => Some("0".to_owned()),
        digits => Some(format!("{sign}{digits}")),
    }
}

#[cfg(test)]
mod tests;
