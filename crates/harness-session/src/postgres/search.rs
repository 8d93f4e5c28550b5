//! Search over the threads of a database. It has no index of words: the server reads the lines.

use std::path::{Path, PathBuf};
use std::pin::pin;

use futures_util::TryStreamExt as _;
use tokio_postgres::types::ToSql;

use super::rows::Rows;
use super::server::{Failure, Link, Server};
use crate::error::{Action, Error, Store};
use crate::location::thread_path;
use crate::seal;
use crate::search::{Hit, Line, MESSAGE, Query};

impl Rows {
    /// Adds the latest matching messages of each thread to `hits`, `most` at most, and returns the paths of the
    /// encrypted threads.
    pub(crate) fn search(
        database: &Path,
        query: &Query,
        most: usize,
        hits: &mut Vec<Hit>,
    ) -> Result<Vec<PathBuf>, Error> {
        let server = Server::of(super::url(database).unwrap_or_default())?;
        let mut sealed = Vec::new();
        for name in Self::threads(database)? {
            let path = thread_path(database, &name);
            let wanted = (name, query.clone(), path.clone());
            let place = (Store::Sessions, Action::Read, &*path);
            let found = server.with_retry(place, wanted, move |link, (name, query, path)| async move {
                find(&link, &name, &query, &path, most).await
            })?;
            match found {
                Some(found) => hits.extend(found),
                None => sealed.push(path),
            }
            hits.sort_by(|a, b| b.at.cmp(&a.at));
            hits.truncate(most);
        }
        Ok(sealed)
    }
}

/// The latest matching messages of a thread; `None` if it is encrypted.
async fn find(
    link: &Link,
    name: &str,
    query: &Query,
    path: &Path,
    most: usize,
) -> Result<Option<Vec<Hit>>, Failure> {
    let from = "FROM harness.lines JOIN harness.threads ON threads.id = lines.thread WHERE name = $1";
    let first = link.0.query_opt(&format!("SELECT line {from} AND number = 1"), &[&name]).await?;
    let first: Option<String> = first.map(|row| row.try_get(0)).transpose()?;
    if first.is_some_and(|line| seal::is_first_line(line.as_bytes())) {
        return Ok(None);
    }
    // The server finds what may match; a word that JSON may write otherwise is left to the query itself.
    let plain = query.words().iter().filter(|word| word.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    let patterns: Vec<String> = plain.map(|word| format!("%{word}%")).collect();
    let select = format!(
        "SELECT line {from} AND starts_with(line, $2) AND lower(line) LIKE ALL ($3) ORDER BY number DESC"
    );
    let parameters: [&(dyn ToSql + Sync); 3] = [&name, &MESSAGE, &patterns];
    let mut rows = pin!(link.0.query_raw(&select, parameters).await?);
    let mut hits = Vec::new();
    while hits.len() < most
        && let Some(row) = rows.try_next().await?
    {
        let message = Line::of(row.try_get::<_, &str>(0)?.as_bytes());
        hits.extend(message.and_then(|found| query.hit(path, found.id, &found.at, &found.message)));
    }
    Ok(Some(hits))
}
