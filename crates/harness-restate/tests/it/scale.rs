//! The page about scale has the tables that the simulation makes.

#[path = "../../examples/capacity.rs"]
#[expect(dead_code, reason = "the test needs no program")]
mod capacity;

#[test]
fn the_page_about_scale_has_what_the_simulation_says() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/explanation/scale.md"));
    let page = page.unwrap();
    for table in [capacity::machines(&capacity::LOADS), capacity::losses()] {
        assert!(page.contains(&table), "docs/explanation/scale.md lacks this table:\n\n{table}");
    }
}
