//! What layers offer to the host and to the model.

use std::sync::Arc;

use harness_core::message::ToolCall;
use harness_core::port::{Clock as _, ContextPipeline as _};
use harness_core::testing::VirtualClock;
use harness_core::tool::ToolCx;
use harness_core::{Millis, Time};
use harness_memory::MemoryError;
use harness_memory::layer::{Called, FnLayer, FunctionDef, LayerDef, LayerSetup, Update};

use super::{Stage, cx, json, log, run};

fn stage() -> Stage {
    let clock = VirtualClock::still(Time(0));
    let slow = clock.clone();
    let add = FunctionDef::new("add", "Adds to the sum").with_input(json(r#"{"type":"integer"}"#));
    let layer = FnLayer::new(LayerDef::new("sum", 10, [])).with_function(add, move |by, cx| {
        let clock = slow.clone();
        async move {
            let by: i64 = by.to().map_err(|fault| MemoryError::failed(fault.to_string()))?;
            clock.sleep_until(clock.now().after(Millis(5))).await;
            let sum = cx.state_as::<i64>()? + by;
            Ok(Called::text(&format!("now {sum}")).with_state(Update::set(&sum)?))
        }
    });
    Stage::on(LayerSetup::new().with(layer), clock)
}

#[test]
fn calls_of_one_layer_come_one_after_another() {
    let stage = stage();
    let log = log([]);
    let cx = cx(&log);
    run(&stage.clock, async {
        stage.layers.begin(&cx).await.unwrap();
        let id = "sum".into();
        let call = |by| stage.layers.call("run", &id, "add", json(by), &cx);
        let (first, second) = tokio::join!(call("2"), call("3"));
        assert_eq!((first, second), (Ok(json("\"now 2\"")), Ok(json("\"now 5\""))));
    });
    assert_eq!(stage.layers.layer_state("run", &"sum".into()), Ok(Some(json("5"))));
}

#[test]
fn a_function_is_a_tool_of_its_layers_name() {
    let stage = stage();
    let tools = stage.layers.tools();
    let def = tools[0].tool_def();
    assert_eq!((def.name.as_str(), &*def.description), ("sum_add", "Adds to the sum"));
    let log = log([]);
    let call = |arguments| {
        let call = ToolCall::new("c", "sum_add", json(arguments));
        let mut tool_cx = ToolCx::for_call(Arc::new(call));
        tool_cx.origin = cx(&log).origin;
        run(&stage.clock, tools[0].call_boxed(tool_cx))
    };
    let done = call("4");
    assert!(!done.is_error());
    assert_eq!(done.content[0].as_text(), Some("now 4"));
    let failed = call("\"four\"");
    assert_eq!(failed.error.map(|error| error.code).as_deref(), Some("memory.hook_failed"));
    assert_eq!(stage.layers.layer_state("run", &"sum".into()), Ok(Some(json("4"))));
}

#[test]
fn what_is_not_there_is_named() {
    let stage = stage();
    let log = log([]);
    let cx = cx(&log);
    let call = |execution: &'static str, layer: &'static str, function: &'static str| {
        let layer = layer.into();
        let cx = &cx;
        let layers = &stage.layers;
        let called =
            run(&stage.clock, async move { layers.call(execution, &layer, function, json("1"), cx).await });
        called.unwrap_err().to_string()
    };
    assert_eq!(call("run", "sum", "add"), "execution `run` is not open");
    run(&stage.clock, stage.layers.begin(&cx)).unwrap();
    assert_eq!(call("run", "product", "add"), "there is no layer `product`");
    assert_eq!(call("run", "sum", "subtract"), "layer `sum` has no function `subtract`");
}
