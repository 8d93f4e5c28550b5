//! What the adapter adds to a connection: time to the first token, time for each delta, and memory for each of
//! many streams at once, beside a bare client that reads the same replies of the same server; and the memory of
//! one very long answer.
//!
//! `cargo bench -p harness-adapters --bench live [-- --only first|delta|streams|heap]`. The server is a process of
//! its own, so that its time and memory do not count. Not a test: nothing fails because a machine is slow.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "a benchmark may fail loudly, prints its figures, measures real time and starts its server"
)]

mod input;
mod served;

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use harness_adapters::chat::{Assembler, ChatModel, ReplyLimits};
use harness_core::message::Message;
use harness_core::port::{DeltaPart, Deltas, Model as _, ModelRequest, PreparedAgent};
use harness_core::transcript::{Transcript, View};
use peak_alloc::PeakAlloc;
use rustix::time::{ClockId, clock_gettime};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Exchanges of each kind for the time to the first token.
const FIRST: usize = 400;
/// Deltas of the long answer, and how many times it is read.
const DELTAS: usize = 100_000;
const TIMES: usize = 5;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|argument| argument == "serve") {
        return served::serve().await;
    }
    let only = arguments.iter().position(|argument| argument == "--only");
    let only = only.and_then(|at| arguments.get(at + 1)).map(String::as_str);
    if only.is_none_or(|only| only == "heap") {
        heap();
    }
    let server = Server::start();
    if only.is_none_or(|only| only == "first") {
        first(&server).await;
    }
    if only.is_none_or(|only| only == "delta") {
        delta(&server).await;
    }
    if only.is_none_or(|only| only == "streams") {
        streams(&server).await;
    }
}

/// The server's process; it ends with this one.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start() -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut process =
            Command::new(program).arg("serve").stdout(Stdio::piped()).spawn().expect("the server starts");
        let mut line = String::new();
        let output = process.stdout.as_mut().expect("its output is read");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("an address");
        Self { process, url: format!("http://{}", line.trim()) }
    }

    fn model(&self, path: &str) -> ChatModel {
        ChatModel::compatible(format!("{}/{path}", self.url), "example/model")
            .key("sk-example")
            .limits(unbounded())
            .build()
            .expect("a model")
    }

    /// Where that model sends its requests.
    fn endpoint(&self, path: &str) -> String {
        format!("{}/{path}/chat/completions", self.url)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Counts pieces and notes when the first came.
#[derive(Default)]
struct Counted {
    pieces: AtomicUsize,
    first: std::sync::OnceLock<Instant>,
}

impl Deltas for Counted {
    fn part(&self, _: DeltaPart) {
        self.first.get_or_init(Instant::now);
        self.pieces.fetch_add(1, Ordering::Relaxed);
    }
}

fn request() -> ModelRequest {
    let log: Transcript = [Arc::new(Message::user("How cold is Oslo?"))].into_iter().collect();
    ModelRequest::new(View::whole(log.prefix()), Arc::new(PreparedAgent::new("main", "Answer briefly.", [])))
}

/// What a bare client sends: as many bytes as the adapter.
const BODY: &str = concat!(
    r#"{"model":"example/model","messages":[{"role":"system","content":"Answer briefly."},"#,
    r#"{"role":"user","content":"How cold is Oslo?"}],"stream":true,"stream_options":{"include_usage":true}}"#
);

async fn bare(client: &reqwest::Client, url: &str) -> reqwest::Response {
    let request = client.post(url).header("content-type", "application/json").body(BODY);
    request.send().await.expect("a reply")
}

/// Time until the first token: connections are open already, both kinds alternate.
async fn first(server: &Server) {
    let (model, client) =
        (server.model("short"), reqwest::Client::builder().no_proxy().build().expect("a client"));
    let url = server.endpoint("short");
    let (mut ours, mut raw) = (Vec::new(), Vec::new());
    for _ in 0..FIRST {
        let from = Instant::now();
        let mut response = bare(&client, &url).await;
        assert!(response.chunk().await.expect("bytes").is_some(), "the first token came");
        raw.push(from.elapsed().as_secs_f64() * 1e6);
        while response.chunk().await.expect("bytes").is_some() {}

        let (counted, asked) = (Counted::default(), request());
        let from = Instant::now();
        model.step(asked, &counted).await.expect("an answer");
        let came = counted.first.get().expect("the first token came");
        ours.push(came.duration_since(from).as_secs_f64() * 1e6);
    }
    let (ours, raw) = (median(ours), median(raw));
    println!(r#"{{"case":"first","ours_us":{ours:.1},"raw_us":{raw:.1},"over_us":{:.1}}}"#, ours - raw);
}

/// Time that this thread works for each delta of a long answer, beside reading the same bytes only.
async fn delta(server: &Server) {
    let path = format!("long/{DELTAS}");
    let (model, client) =
        (server.model(&path), reqwest::Client::builder().no_proxy().build().expect("a client"));
    let url = server.endpoint(&path);
    let (mut ours, mut raw) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let from = worked();
        let mut response = bare(&client, &url).await;
        while response.chunk().await.expect("bytes").is_some() {}
        raw.push((worked() - from) * 1e9 / DELTAS as f64);

        let counted = Counted::default();
        let from = worked();
        model.step(request(), &counted).await.expect("an answer");
        ours.push((worked() - from) * 1e9 / DELTAS as f64);
        assert_eq!(counted.pieces.load(Ordering::Relaxed), DELTAS, "every delta came");
    }
    let (ours, raw) = (median(ours), median(raw));
    println!(r#"{{"case":"delta","ours_ns":{ours:.0},"raw_ns":{raw:.0},"over_ns":{:.0}}}"#, ours - raw);
}

/// Memory of streams that are all open at once; the server lets none end before.
async fn streams(server: &Server) {
    let model = server.model("meet");
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..served::STREAMS {
        let model = model.clone();
        tasks.spawn(async move {
            let counted = Counted::default();
            let answer = model.step(request(), &counted).await.expect("an answer");
            (counted.pieces.load(Ordering::Relaxed), answer.joined_text().len())
        });
    }
    let (mut whole, mut payload) = (0, 0);
    while let Some(done) = tasks.join_next().await {
        let (pieces, length) = done.expect("no stream panics");
        whole += usize::from(pieces == served::PIECES);
        payload = length;
    }
    let each = (ALLOCATOR.peak_usage() - before) / served::STREAMS;
    println!(
        r#"{{"case":"streams","streams":{},"whole":{whole},"payload_bytes":{payload},"bytes_each":{each},"over_bytes":{}}}"#,
        served::STREAMS,
        each.saturating_sub(payload)
    );
}

/// The most memory that an answer of 64 MiB on the wire takes while it is read.
fn heap() {
    let block: String = (0..1_000).map(input::text).collect();
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let mut assembler = Assembler::new(unbounded());
    let mut bytes = 0;
    while bytes < 64 << 20 {
        assembler.feed(block.as_bytes(), &mut |_| ()).expect("it is within the bounds");
        bytes += block.len();
    }
    let peak = ALLOCATOR.peak_usage() - before;
    let answer = assembler.finish().content.map_or(0, |text| text.len());
    println!(r#"{{"case":"heap","bytes":{bytes},"answer_bytes":{answer},"peak_bytes":{peak}}}"#);
}

fn unbounded() -> ReplyLimits {
    let mut limits = ReplyLimits::default();
    limits.body = usize::MAX;
    limits
}

/// Seconds that a core has worked for this thread.
fn worked() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().expect("there are samples")
}
