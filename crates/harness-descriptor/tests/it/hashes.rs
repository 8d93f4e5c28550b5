//! Hashes of agents and parts: each tells where a change is, and nothing else moves.

use harness_descriptor::{Descriptor, load_text};

const BASE: &str = "
agent_defaults: {model: m, instructions: Help.}
instruction_parts: {tone: Be kind., rules: Be exact.}
agents:
  desk: {tools: [search]}
  own: {model: other, instructions: Mine.}
  parts: {instructions_sequence: [{ref: tone}]}
";

fn load(yaml: &str) -> Descriptor {
    load_text(yaml).unwrap()
}

/// The agents and parts whose hashes differ once `from` is replaced by `to`.
#[track_caller]
fn check(from: &str, to: &str, agents: &[&str], parts: &[&str]) {
    assert!(BASE.contains(from));
    let (old, new) = (load(BASE), load(&BASE.replacen(from, to, 1)));
    let changed = |old: Vec<(String, String)>, new: Vec<(String, String)>| -> Vec<String> {
        new.into_iter().filter(|pair| !old.contains(pair)).map(|(name, _)| name).collect()
    };
    let all = |descriptor: &Descriptor| -> Vec<_> {
        descriptor.agent_hashes().map(|(id, hash)| (id.to_owned(), hash.to_string())).collect()
    };
    assert_eq!(changed(all(&old), all(&new)), agents);
    let all = |descriptor: &Descriptor| -> Vec<_> {
        descriptor.part_hashes().map(|(name, hash)| (name.to_owned(), hash.to_string())).collect()
    };
    assert_eq!(changed(all(&old), all(&new)), parts);
}

#[test]
fn a_change_of_an_agent_shows_in_that_agent() {
    check("[search]", "[]", &["desk"], &[]);
    check("Mine.", "Yours.", &["own"], &[]);
}

#[test]
fn a_change_of_the_defaults_shows_in_those_who_inherit() {
    check("model: m", "model: n", &["desk", "parts"], &[]);
    check("Help.", "Assist.", &["desk"], &[]);
}

#[test]
fn a_change_of_a_part_shows_in_the_part_and_where_it_is_used() {
    check("Be kind.", "Be brief.", &["parts"], &["tone"]);
    check("Be exact.", "Be vague.", &[], &["rules"]);
    check("tone: Be kind., ", "tone: Be kind., more: Be exact., ", &[], &["more"]);
}

#[test]
fn writing_a_default_out_changes_nothing() {
    check("{tools", "{model: m, instructions: Help., tools", &[], &[]);
    check("{tools", "{model: ~, tools", &[], &[]);
}

#[test]
fn the_hash_of_a_part_is_that_of_its_canonical_text() {
    let descriptor = load("instruction_parts: {a: x}\nagents: [no, mapping]");
    let parts: Vec<_> = descriptor.part_hashes().map(|(name, hash)| format!("{name} {hash}")).collect();
    // SHA-256 of the three bytes `"x"`.
    assert_eq!(parts, ["a sha256:ba2df4903a2c14e86dc3bcca58911b44ac1d2514b7227bf6eb08cfb978f55a1b"]);
    assert_eq!(descriptor.agent_hashes().count(), 0);
}

#[test]
fn law_9_the_hash_is_that_of_the_canonical_text_however_often_a_part_is_used() {
    use sha2::Digest as _;

    let part = "A \\\"line\\\" of it.\\n".repeat(100);
    let item = "{ref: long}, ".repeat(5);
    let yaml = format!(
        "instruction_parts: {{long: \"{part}\"}}\nagents: {{a: {{instructions_sequence: [{item}]}}}}"
    );
    let descriptor = load(&yaml);
    let digest = sha2::Sha256::digest(descriptor.canonical_text().as_bytes());
    assert_eq!(descriptor.hash().as_bytes()[..], digest[..]);
}
