//! A supervisor for hosts whose own executable cannot be one: see [`harness_host::process::supervise_by`].

fn main() {
    harness_host::process::supervise();
}
