//! Every file of this folder is a module of the one test binary.

use std::fs;
use std::path::Path;

#[test]
fn every_file_is_a_module() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = fs::read_to_string(folder.join("main.rs")).unwrap();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        if is_rust && name != "main" {
            assert!(main.lines().any(|line| line == format!("mod {name};")), "{name}.rs is not in main.rs");
        }
    }
}
