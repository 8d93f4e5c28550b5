//! Reference pages that are generated from the program, or checked against it. `UPDATE_EXPECT=1` writes the generated ones.

mod environment;
mod run_record;
