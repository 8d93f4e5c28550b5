//! Reads error codes, messages and hints from the source.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprPath, Fields, ItemEnum, ItemImpl, Lit, Pat, PatStruct, PatTupleStruct, Type};

/// Error code with its text in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Code {
    /// Message with placeholders; none if it depends on a cause.
    pub(super) message: Option<String>,
    /// Meaning, from the documentation of the variant.
    pub(super) meaning: Option<String>,
    /// Hint.
    pub(super) hint: Option<String>,
}

/// Error codes by name.
pub(super) type Codes = BTreeMap<String, Code>;

/// A variant of an enum.
type Variant = (String, String);

/// What a crate declares.
#[derive(Default)]
struct Declared {
    texts: BTreeMap<Variant, Code>,
    codes: Vec<(Variant, String)>,
    hints: BTreeMap<Variant, String>,
    literals: BTreeSet<String>,
    owner: String,
}

/// Reads the crate whose sources are at `directory` into `codes`.
pub(super) fn read_crate(directory: &Path, codes: &mut Codes) {
    let mut declared = Declared::default();
    read_directory(directory, &mut declared);
    for (variant, code) in &declared.codes {
        let entry = codes.entry(code.clone()).or_default();
        let text = declared.texts.get(variant).cloned().unwrap_or_default();
        entry.message = entry.message.take().or(text.message);
        entry.meaning = entry.meaning.take().or(text.meaning);
        entry.hint = entry.hint.take().or_else(|| declared.hints.get(variant).cloned());
    }
    for code in declared.literals {
        codes.entry(code).or_default();
    }
}

fn read_directory(directory: &Path, declared: &mut Declared) {
    let mut paths: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            read_directory(&path, declared);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            declared.visit_file(&syn::parse_file(&text).unwrap());
        }
    }
}

impl<'ast> Visit<'ast> for Declared {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.ident != "tests" {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        for variant in &item.variants {
            let message = variant.attrs.iter().find_map(message_of);
            let meaning = documentation(&variant.attrs);
            let name = (item.ident.to_string(), variant.ident.to_string());
            self.texts.insert(name, Code { message, meaning, hint: None });
            if let Fields::Named(fields) = &variant.fields {
                visit::visit_fields_named(self, fields);
            }
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if let Type::Path(path) = &*item.self_ty
            && let Some(name) = path.path.segments.last()
        {
            self.owner = name.ident.to_string();
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        let name = function.sig.ident.to_string();
        let is_code = ["kind", "code"].contains(&name.as_str());
        if is_code || ["hint", "advice", "hint_of_cause"].contains(&name.as_str()) {
            let mut arms = Arms { owner: self.owner.clone(), found: Vec::new() };
            arms.visit_block(&function.block);
            for (variant, text) in arms.found {
                if is_code && is_code_name(&text) {
                    self.codes.push((variant, text));
                } else if !is_code {
                    self.hints.entry(variant).or_insert(text);
                }
            }
        }
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        call.tokens.to_string().split('"').for_each(|text| self.add_literal(text));
    }

    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        self.add_literal(&literal.value());
    }
}

impl Declared {
    /// Adds a text that has the form of a code.
    fn add_literal(&mut self, text: &str) {
        if AREAS.contains(&text.split('.').next().unwrap_or_default()) && is_code_name(text) {
            self.literals.insert(text.to_owned());
        }
    }
}

/// Areas of codes that are written where the error occurs.
const AREAS: &[&str] = &[
    "artifact",
    "checkpoint",
    "cli",
    "engine",
    "memory",
    "notes",
    "relay",
    "request",
    "resume",
    "run_resume",
    "runtime",
    "server",
    "session",
    "storage",
    "tools",
];

fn is_code_name(text: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    text.split_once('.').is_some_and(|(area, name)| is_word(area) && is_word(name))
}

/// Arms of a match on variants, with the first text of each.
struct Arms {
    owner: String,
    found: Vec<(Variant, String)>,
}

impl<'ast> Visit<'ast> for Arms {
    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let mut variants = Vec::new();
        variants_of(&arm.pat, &self.owner, &mut variants);
        if let Some(text) = first_text(&arm.body) {
            self.found.extend(variants.into_iter().map(|variant| (variant, text.clone())));
        }
        visit::visit_arm(self, arm);
    }
}

fn variants_of(pattern: &Pat, owner: &str, variants: &mut Vec<Variant>) {
    if let Pat::Or(or) = pattern {
        return or.cases.iter().for_each(|case| variants_of(case, owner, variants));
    }
    let (Pat::Path(ExprPath { path, .. })
    | Pat::Struct(PatStruct { path, .. })
    | Pat::TupleStruct(PatTupleStruct { path, .. })) = pattern
    else {
        return;
    };
    if let [.., of, variant] = path.segments.iter().collect::<Vec<_>>().as_slice() {
        let of = of.ident.to_string();
        variants.push((if of == "Self" { owner.to_owned() } else { of }, variant.ident.to_string()));
    }
}

/// The first string of an expression; format strings have their placeholders.
fn first_text(expression: &Expr) -> Option<String> {
    struct First(Option<String>);
    impl<'ast> Visit<'ast> for First {
        fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
            self.0.get_or_insert_with(|| literal.value());
        }

        fn visit_macro(&mut self, call: &'ast syn::Macro) {
            if call.path.is_ident("format")
                && let Some(text) = call.tokens.clone().into_iter().next()
                && let Ok(literal) = syn::parse_str::<syn::LitStr>(&text.to_string())
            {
                self.visit_lit_str(&literal);
            }
        }
    }
    let mut first = First(None);
    first.visit_expr(expression);
    first.0
}

/// The text of `#[error("…")]`.
fn message_of(attribute: &Attribute) -> Option<String> {
    if !attribute.path().is_ident("error") {
        return None;
    }
    let tokens = attribute.meta.require_list().ok()?.tokens.clone();
    let first = tokens.into_iter().next()?.to_string();
    let text = syn::parse_str::<syn::LitStr>(&first).ok()?.value();
    (!text.starts_with("{}") && !text.starts_with("{0}") && text != "{message}").then_some(text)
}

/// The first paragraph of the documentation.
fn documentation(attributes: &[Attribute]) -> Option<String> {
    let lines =
        attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).filter_map(|attribute| {
            let Expr::Lit(literal) = &attribute.meta.require_name_value().ok()?.value else { return None };
            let Lit::Str(text) = &literal.lit else { return None };
            Some(text.value().trim().to_owned())
        });
    let first = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    (!first.is_empty()).then_some(first)
}
