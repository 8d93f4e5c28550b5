//! Layers that cannot stand together are refused, with everything that is wrong.

use std::sync::Arc;

use harness_core::Time;
use harness_core::testing::VirtualClock;
use harness_memory::layer::{Budget, FnLayer, FunctionDef, Hook, LayerDef, LayerSetup, Pipeline, Scope};

#[test]
fn all_faults_are_told_together() {
    let layer = |def| FnLayer::new(def);
    let hooks = [Hook::Recall];
    let budget = |id: &str, tokens| {
        let mut def = LayerDef::new(id, 20, hooks);
        def.budget = Budget::Fixed(tokens);
        def
    };
    let call = |_, _| async { Ok(harness_memory::layer::Called::text("")) };
    let setup = LayerSetup::new()
        .with(layer(LayerDef::new("twin", 10, hooks)))
        .with(layer(LayerDef::new("twin", 20, hooks)))
        .with(layer(LayerDef::new("", 20, hooks)))
        .with(layer(LayerDef::new("idle", 20, [])))
        .with(layer(LayerDef::new("upside-down", 20, hooks).with_range(9, 3)))
        .with(layer(budget("owing", -1.0)))
        .with(layer(budget("odd", f64::NAN)))
        .with(layer(LayerDef::new("homeless", 20, hooks).with_scope(Scope::Thread)))
        .with(layer(LayerDef::new("a", 20, [])).with_function(FunctionDef::new("b_c", ""), call))
        .with(layer(LayerDef::new("a_b", 20, [])).with_function(FunctionDef::new("c", ""), call));
    let fault = Pipeline::build(setup, Arc::new(VirtualClock::still(Time(0)))).unwrap_err();
    assert_eq!(fault.kind(), "memory.invalid_layers");
    insta::assert_snapshot!(fault.to_string().replace("; layer", ";\nlayer").replace("; the", ";\nthe"), @r"
    the layer at position 3 (counted from 1) has an empty id;
    layer `idle`: it names no hook and provides nothing; list its hooks in its definition;
    layer `upside-down`: its budget 9 to 3 is not a range of tokens from 0 up;
    layer `owing`: its budget -1 is not a range of tokens from 0 up;
    layer `odd`: its budget NaN is not a range of tokens from 0 up;
    layer `homeless`: its scope `thread` outlives an execution, but there is no storage;
    layer `a_b`: the tool name `a_b_c` of its function `c` is that of another function; rename one;
    layer `twin`: its id is used 2 times; give each layer its own
    ");
}
