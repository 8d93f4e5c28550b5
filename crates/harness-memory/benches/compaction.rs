//! The cost of making a long conversation shorter, without summaries: groups, counts, plans and windows over
//! 2,000, 10,000 and 20,000 messages. The figure in the last column is the growth of the last step: two is
//! linear. (The first step also leaves the processor's caches.)
//!
//! `cargo bench -p harness-memory --bench compaction [-- --json]`. Not a test: nothing fails because a
//! machine is slow.

#![expect(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a benchmark prints its figures, fails loudly and measures real time"
)]

use std::hint::black_box;
use std::time::Instant;

use harness_core::Json;
use harness_core::message::{AssistantMessage, Block, Message, ToolCall, ToolResultMessage};
use harness_memory::compact::group::Groups;
use harness_memory::compact::item::Item;
use harness_memory::compact::plan::{Clear, Coordinator, Drop, total_tokens};
use harness_memory::compact::pressure::TokenBudget;
use harness_memory::compact::tokens::RoundedCharacters;
use harness_memory::compact::window::{
    ContextWindow, FlooredCharacters, Measure, ToolResults, Truncation, Window, WindowStrategy,
};

/// A conversation of `n` messages: a question, batches of calls with long results, now and then a text;
/// about 250 tokens a message.
fn conversation(n: usize) -> Vec<Item> {
    let mut messages = vec![Message::user("Compare all the files, and say which of them differ.")];
    while messages.len() < n {
        let at = messages.len();
        let arguments = Json::parse(&format!(r#"{{"path":"src/file_{at}.rs"}}"#)).expect("it is JSON");
        let call = ToolCall::new(format!("call_{at}"), "read_file", arguments);
        let result = "a line of the file\n".repeat(112);
        messages.push(AssistantMessage::calls([call.clone()]).into());
        messages.push(ToolResultMessage::new(&call, vec![Block::text(result)], false).into());
        if at % 19 == 0 {
            messages.push(AssistantMessage::text("They differ in one line. ".repeat(8)).into());
            messages.push(Message::user("Go on."));
        }
    }
    messages.truncate(n);
    messages.into_iter().enumerate().map(|(at, message)| Item::new(format!("m{at}"), message)).collect()
}

/// Milliseconds that `work` takes on what `prepare` makes: the least of seven times.
fn least<T, R>(prepare: impl Fn() -> T, mut work: impl FnMut(T) -> R) -> f64 {
    let sample = |_| {
        let input = prepare();
        let from = Instant::now();
        let output = black_box(work(input));
        let elapsed = from.elapsed().as_secs_f64() * 1e3;
        drop(output);
        elapsed
    };
    let mut work_samples: Vec<f64> = (0..7).map(sample).collect();
    work_samples.sort_by(f64::total_cmp);
    work_samples[0]
}

fn windows(items: &[Item], strategy: &dyn WindowStrategy) -> f64 {
    let window = Window::of(items, &FlooredCharacters);
    least(
        || window.clone(),
        |mut window| {
            strategy.apply(&mut window, &FlooredCharacters);
            (window.view(), window)
        },
    )
}

fn figures(items: &[Item]) -> Vec<(&'static str, f64)> {
    let ladder = Coordinator::new([Clear::default().into(), Drop::default().into()]);
    let tokens = total_tokens(&RoundedCharacters, items);
    let target = TokenBudget::default().tokens_to_free_of(tokens);
    let compact = || {
        let mut coordination = ladder.begin(items, &RoundedCharacters, target);
        while coordination.next().is_some() {}
        coordination.finish().plan
    };
    let plan = compact();
    let truncation = Truncation::new(Measure::Tokens, 102_400, 64_000).expect("it makes sense");
    let context = ContextWindow::new(128_000, 16_384).expect("it makes sense");
    let collapse = ToolResults { keep_last_tool_call_groups: 4, ..ToolResults::default() };
    vec![
        ("groups", least(|| (), |()| Groups::of(items))),
        ("count all tokens", least(|| (), |()| total_tokens(&RoundedCharacters, items))),
        ("plan: count, clear, drop, measure", least(|| (), |()| compact())),
        ("plan: render", least(|| (), |()| plan.render(items))),
        ("window: group and count", least(|| (), |()| Window::of(items, &FlooredCharacters))),
        ("window: context window 128,000; 16,384", windows(items, &context)),
        ("window: tool results, keep 4", windows(items, &collapse)),
        ("window: truncation 102,400 -> 64,000", windows(items, &truncation)),
    ]
}

fn main() {
    let conversations = [2_000, 10_000, 20_000].map(conversation);
    let [small, middle, large] = conversations.each_ref().map(|items| figures(items));
    if std::env::args().any(|argument| argument == "--json") {
        for ((name, few), (_, many)) in small.into_iter().zip(large) {
            println!(r#"{{"case":"{name}","ms2000":{few:.3},"ms20000":{many:.3}}}"#);
        }
        return;
    }
    let tokens = total_tokens(&RoundedCharacters, &conversations[0]);
    println!("{tokens} tokens in 2,000 messages, then 10,000 and 20,000 messages; milliseconds");
    for (((name, few), (_, more)), (_, many)) in small.into_iter().zip(middle).zip(large) {
        println!("{name:<40} {few:>9.3} {more:>9.3} {many:>9.3} {:>6.1}x", many / more);
    }
}
