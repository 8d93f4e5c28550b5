//! A supervisor for hosts whose own executable cannot be one: see [`harness_process::supervise_by`].

fn main() {
    harness_process::supervise();
}
