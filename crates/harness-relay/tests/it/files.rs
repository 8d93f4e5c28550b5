//! Guards the test binary itself.

#[test]
fn every_file_is_a_module_of_the_binary() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(name == "main" || main.contains(&format!("mod {name};")), "{name} is not part of main.rs");
    }
}
