//! The arguments of `harness serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{DescriptorArg, ThreadArgs};

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) descriptor: DescriptorArg,

    /// Where to listen; port 0 takes a free one, and the first line of output says which
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8787")]
    pub(crate) listen: SocketAddr,

    /// Keep the conversations as files of this folder, and go on with those that are there [default: keep them
    /// until the server ends]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) sessions: Option<PathBuf>,

    /// Serve only those who send the token that this file holds, which only you may read; needed to listen
    /// elsewhere than on this machine's loopback address
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,

    /// One more name under which the server may be asked, beside those of this machine; may be repeated
    /// [default with --listen elsewhere: all names]
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,

    /// An origin whose web pages may ask, for example https://app.example.com; may be repeated [default: none]
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
}

const NOTES: &str = "\
GET /openapi.json describes the routes. With --log info each request is a line on standard error.

Ctrl-C ends streams and runs and leaves the sessions in order; a second one ends the program at once.";
