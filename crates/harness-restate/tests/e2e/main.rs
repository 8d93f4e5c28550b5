//! Threads on a real engine: `cargo xtask e2e cluster` installs its server, and runs these checks.
//!
//! The same program is the worker process that the checks start and kill.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod bare;
mod cluster;
mod deltas;
mod figures;
mod front;
#[path = "../it/kept.rs"]
mod kept;
mod kills;
mod load;
#[path = "../it/on_tokio.rs"]
mod on_tokio;
#[path = "../it/one_line.rs"]
mod one_line;
mod plan;
mod processes;
#[path = "../it/scripts.rs"]
#[expect(dead_code, reason = "the other test program uses the rest")]
mod scripts;
#[path = "../it/tally.rs"]
mod tally;
mod user;
mod worker;
#[path = "../it/world.rs"]
#[expect(dead_code, reason = "the other test program uses the rest")]
mod world;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Trial};

use crate::processes::server_program;

/// A check: its name, and what it does.
type Check = (&'static str, fn());

const CHECKS: &[Check] = &[
    ("cluster::scripts_keep_the_laws", cluster::scripts_keep_the_laws),
    ("cluster::handlers_change_the_queue", cluster::handlers_change_the_queue),
    ("cluster::an_abort_ends_a_model_call", cluster::an_abort_ends_a_model_call),
    ("cluster::an_approval_outlives_its_worker", cluster::an_approval_outlives_its_worker),
    ("cluster::a_forgotten_conversation_leaves_nothing", cluster::a_forgotten_conversation_leaves_nothing),
    ("cluster::iterations_have_little_overhead", figures::iterations_have_little_overhead),
    ("cluster::many_runs_store_as_many_entries", figures::many_runs_store_as_many_entries),
    (
        "cluster::workers_take_only_what_their_engine_signed",
        cluster::workers_take_only_what_their_engine_signed,
    ),
    ("cluster::workers_share_a_quota", cluster::workers_share_a_quota),
    ("cluster::workers_share_budgets", cluster::workers_share_budgets),
    ("cluster::values_outlive_workers", cluster::values_outlive_workers),
    ("cluster::the_plan_fits_the_cluster", plan::the_plan_fits_the_cluster),
    ("cluster::a_front_end_serves_threads", front::a_front_end_serves_threads),
    ("cluster::a_front_end_compacts_a_thread", front::a_front_end_compacts_a_thread),
    ("cluster::an_approval_outlives_its_front_end", front::an_approval_outlives_its_front_end),
    ("cluster::a_parked_sub_agent_outlives_everything", front::a_parked_sub_agent_outlives_everything),
    ("cluster::a_front_end_aborts_a_run", front::a_front_end_aborts_a_run),
    ("cluster::another_front_end_sees_deltas", deltas::another_front_end_sees_deltas),
    ("cluster::another_front_end_sees_progress", deltas::another_front_end_sees_progress),
    ("cluster::an_answer_of_a_killed_worker_starts_again", deltas::an_answer_of_a_killed_worker_starts_again),
    ("cluster::killed_workers_lose_nothing", kills::killed_workers_lose_nothing),
    ("cluster::a_killed_node_is_replaced_soon", load::a_killed_node_is_replaced_soon),
    ("cluster::killed_nodes_lose_nothing", load::killed_nodes_lose_nothing),
    ("cluster::frozen_and_cut_off_nodes_lose_nothing", load::frozen_and_cut_off_nodes_lose_nothing),
    ("cluster::an_upgrade_and_the_way_back_lose_nothing", load::an_upgrade_and_the_way_back_lose_nothing),
    ("cluster::a_sub_agent_outlives_its_worker", kills::a_sub_agent_outlives_its_worker),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "worker") {
        return worker::serve(&words[1..]);
    }
    if let [mode, port] = &words[..]
        && mode == "bare"
    {
        return bare::serve(port);
    }
    let has_server = server_program().is_some();
    let trials = CHECKS.iter().map(|(name, check)| {
        Trial::ignorable_test(*name, move || {
            if !has_server {
                return Ok(Completion::ignored_with(
                    "SKIP: no server of Restate; use `cargo xtask e2e cluster`",
                ));
            }
            check();
            Ok(Completion::Completed)
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
