//! The loopback server of the benchmarks: one thread, kept connections, prepared bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::input;

/// Streams of the case in which they all meet, and the pieces of each.
pub(crate) const STREAMS: usize = 1_000;
pub(crate) const PIECES: usize = 200;

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// Where streams wait for each other.
#[derive(Default)]
struct Meeting {
    arrived: AtomicUsize,
    all: Notify,
}

/// Serves until the process is ended; the first line of output is the address.
pub(crate) async fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    println!("{}", listener.local_addr().expect("an address"));
    let meeting = Arc::new(Meeting::default());
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        tokio::spawn(connection(stream, Arc::clone(&meeting)));
    }
}

async fn connection(mut stream: TcpStream, meeting: Arc<Meeting>) {
    stream.set_nodelay(true).expect("a socket");
    while let Some(path) = request(&mut stream).await {
        let mut parts = path.trim_start_matches('/').split('/');
        let done = match (parts.next(), parts.next().and_then(|count| count.parse().ok())) {
            (Some("long"), Some(count)) => long(&mut stream, count).await,
            (Some("meet"), _) => meet(&mut stream, &meeting).await,
            _ => short(&mut stream).await,
        };
        if done.is_err() {
            return;
        }
    }
}

/// Reads a request and returns its path.
async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let head = loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let text = String::from_utf8_lossy(bytes.get(..head)?).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    let length: usize = length.trim().parse().ok()?;
    while bytes.len() < head + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    text.split_whitespace().nth(1).map(str::to_owned)
}

fn chunk(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n", body.len())
}

fn pieces(range: std::ops::Range<usize>) -> String {
    range.map(input::text).collect()
}

/// One piece, then the end.
async fn short(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all((HEAD.to_owned() + &chunk(&input::text(0))).as_bytes()).await?;
    stream.write_all((chunk(&input::end("stop")) + "0\r\n\r\n").as_bytes()).await
}

/// So many pieces as fast as they are taken.
async fn long(stream: &mut TcpStream, count: usize) -> std::io::Result<()> {
    stream.write_all(HEAD.as_bytes()).await?;
    let block = chunk(&pieces(0..100));
    for _ in 0..count / 100 {
        stream.write_all(block.as_bytes()).await?;
    }
    stream.write_all((chunk(&input::end("stop")) + "0\r\n\r\n").as_bytes()).await
}

/// Half of the pieces, one at a time; the other half once all streams have come so far.
async fn meet(stream: &mut TcpStream, meeting: &Meeting) -> std::io::Result<()> {
    stream.write_all(HEAD.as_bytes()).await?;
    for piece in 0..PIECES / 2 {
        stream.write_all(chunk(&input::text(piece)).as_bytes()).await?;
        tokio::task::yield_now().await;
    }
    let all = meeting.all.notified();
    if meeting.arrived.fetch_add(1, Ordering::Relaxed) + 1 == STREAMS {
        meeting.all.notify_waiters();
    } else {
        all.await;
    }
    for piece in PIECES / 2..PIECES {
        stream.write_all(chunk(&input::text(piece)).as_bytes()).await?;
        tokio::task::yield_now().await;
    }
    stream.write_all((chunk(&input::end("stop")) + "0\r\n\r\n").as_bytes()).await
}
