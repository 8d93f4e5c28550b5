//! The tests of this crate, one module per topic.
#![cfg(test)]

mod artifact;
mod blocking;
mod branch;
mod checkpoint;
mod contract;
mod crash;
mod crash_points;
mod damage;
mod disturbed;
mod format;
mod golden;
mod group;
mod kill;
mod lock;
mod pairs;
mod property;
mod repair;
mod replace;
mod scenarios;
mod sealed;
mod search;
mod sqlite;
mod storage;
mod support;
mod tree;

#[test]
fn every_file_is_a_module() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it");
    let listed = include_str!("main.rs");
    for file in std::fs::read_dir(folder).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|module| *module != "main") {
            assert!(listed.contains(&format!("mod {module};")), "{name} is not a module");
        }
    }
}
