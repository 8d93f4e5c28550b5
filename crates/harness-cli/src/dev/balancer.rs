//! One address for all workers, as a load balancer gives them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Connections at once. The engine has a few for each partition.
const CONNECTIONS: usize = 1_024;

/// Pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// Forwards connections to the workers in turn, until it is dropped. One that does not respond is left out.
pub(super) async fn balance(listener: TcpListener, workers: Vec<SocketAddr>) {
    let (workers, turn) = (Arc::new(workers), Arc::<AtomicUsize>::default());
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((mut from, _)) = listener.accept().await else {
            // No file is free; one is when a connection ends.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (workers, turn) = (Arc::clone(&workers), Arc::clone(&turn));
        connections.spawn(async move {
            let first = turn.fetch_add(1, Ordering::Relaxed);
            if let Some(mut to) = connect(&workers, first).await {
                let _ = (from.set_nodelay(true), to.set_nodelay(true));
                let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
            }
            drop(place);
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn connect(workers: &[SocketAddr], first: usize) -> Option<TcpStream> {
    for worker in workers.iter().cycle().skip(first % workers.len().max(1)).take(workers.len()) {
        if let Ok(stream) = TcpStream::connect(worker).await {
            return Some(stream);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// A worker that says its name; `None` is one that has ended.
    async fn worker(name: Option<&'static str>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let Some(name) = name else { return address };
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                stream.write_all(name.as_bytes()).await.unwrap();
            }
        });
        address
    }

    async fn said(workers: Vec<SocketAddr>, times: usize) -> Vec<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(balance(listener, workers));
        let mut said = Vec::new();
        for _ in 0..times {
            let mut text = String::new();
            TcpStream::connect(address).await.unwrap().read_to_string(&mut text).await.unwrap();
            said.push(text);
        }
        said
    }

    #[tokio::test]
    async fn workers_are_taken_in_turn_and_those_that_ended_are_left_out() {
        let (one, ended, two) = (worker(Some("one")).await, worker(None).await, worker(Some("two")).await);
        assert_eq!(said(vec![one, two], 3).await, ["one", "two", "one"]);
        assert_eq!(said(vec![one, ended], 3).await, ["one", "one", "one"]);
        assert_eq!(said(vec![ended], 1).await, [""]);
    }
}
