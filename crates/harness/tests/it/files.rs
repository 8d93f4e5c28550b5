//! A test file that `main.rs` does not name would never run.

#[test]
fn every_file_is_a_module_of_this_binary() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = include_str!("main.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_rust = path.extension().map_or(path.join("mod.rs").exists(), |extension| extension == "rs");
        assert!(!is_rust || name == "main" || main.contains(&format!("mod {name};")), "{}", path.display());
    }
}
