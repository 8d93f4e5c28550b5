//! Workers and runs that an engine knows: for the person on call.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use harness::core::{ThreadId, Time};
use reqwest::Method;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::engine::{Engine, EngineError, Request};
use super::service::{LOG, RUN, STEP, THREAD};

/// Attempts without progress, after about 12 s, from which on work counts as stuck.
const STUCK: u64 = 8;
/// How long [`Engine::end_runs`] waits for the end of invocations, and the pause between two looks.
const ENDS: (Duration, Duration) = (Duration::from_secs(30), Duration::from_millis(100));

/// Workers that are registered under one URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Deployment {
    /// Id at the engine.
    pub id: String,
    /// URL under which the engine reaches the workers.
    pub url: String,
    /// When it was registered.
    pub since: Time,
    /// Whether new runs go there: it was registered last.
    pub is_latest: bool,
    /// Runs at work that stay with it.
    pub runs: u64,
}

/// State of a run at the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunState {
    /// Another invocation of its thread is not over.
    Queued,
    /// A worker has it.
    Running,
    /// It waits for a step, a decision or a time, and holds no worker.
    Waiting,
    /// An attempt failed; the engine starts a new one.
    BackingOff,
    /// Too many attempts failed. It continues when it is resumed.
    Paused,
    /// The thread has a run, and the engine does not: it was removed.
    Lost,
}

impl RunState {
    /// The state in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::BackingOff => "backing off",
            Self::Paused => "paused",
            Self::Lost => "lost",
        }
    }

    fn of(status: &str) -> Self {
        match status {
            "paused" => Self::Paused,
            "backing-off" => Self::BackingOff,
            "suspended" => Self::Waiting,
            "running" => Self::Running,
            _ => Self::Queued,
        }
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Work that fails: of a run itself, or of a step that it waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Failure {
    /// Attempts without progress.
    pub attempts: u64,
    /// Error of the last attempt, if the engine has one.
    pub error: Option<String>,
    /// Whether a step of the run fails: a model, a tool, or another slow operation.
    pub is_step: bool,
}

/// A run that is not over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunAtWork {
    /// Thread of the run.
    pub thread: ThreadId,
    /// Its invocation at the engine; `None` of a lost run.
    pub invocation: Option<String>,
    /// State of its work.
    pub state: RunState,
    /// When the invocation started. A long run has several, one after the other.
    pub since: Option<Time>,
    /// The deployment that it stays with.
    pub deployment: Option<String>,
    /// The failures of the run and of its steps.
    pub failures: Vec<Failure>,
}

/// Which runs are listed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum RunFilter<'f> {
    /// All that are not over.
    All,
    /// Those that need a person: paused, lost, or failing for more than about 12 s, as their steps.
    Stuck,
    /// Those of one thread.
    Thread(&'f ThreadId),
}

/// An engine at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EngineStatus {
    /// Version of the server.
    pub version: String,
    /// The deployments of this crate's services, the latest first.
    pub deployments: Vec<Deployment>,
    /// Runs by state.
    pub runs: BTreeMap<RunState, u64>,
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

#[derive(Deserialize)]
struct Rows<R> {
    rows: Vec<R>,
}

#[derive(Deserialize)]
struct DeploymentRow {
    id: String,
    endpoint: String,
    created: i64,
    latest: bool,
}

#[derive(Deserialize)]
struct Count {
    of: Option<String>,
    count: u64,
}

#[derive(Deserialize)]
struct InvocationRow {
    id: String,
    thread: Option<String>,
    status: String,
    created: i64,
    attempts: Option<u64>,
    error: Option<String>,
    deployment: Option<String>,
    caller: Option<String>,
}

#[derive(Deserialize)]
struct Key {
    key: String,
}

impl Engine {
    /// The version of the server, the deployments of its workers, and how many runs are in which state.
    ///
    /// # Errors
    /// [`EngineError::NoAdmin`]; when the admin API cannot be reached, or something else responds at its URL.
    pub async fn status(&self) -> Result<EngineStatus, EngineError> {
        let version = self.version().await?;
        let runs = self.count("status").await?;
        let mut states = BTreeMap::new();
        for (status, count) in &runs {
            *states.entry(RunState::of(status)).or_default() += count;
        }
        let pinned = self.count("pinned_deployment_id").await?;
        let sql = format!(
            "SELECT d.id AS id, d.endpoint AS endpoint, CAST(d.created_at AS BIGINT) AS created, \
             s.name IS NOT NULL AS latest FROM sys_deployment d \
             LEFT JOIN sys_service s ON s.deployment_id = d.id AND s.name = '{RUN}' \
             WHERE array_has(d.services, '{RUN}') ORDER BY d.created_at DESC LIMIT 100"
        );
        let deployments = self.query::<DeploymentRow>(&sql).await?.into_iter().map(|row| Deployment {
            runs: pinned.get(&row.id).copied().unwrap_or_default(),
            id: row.id,
            url: row.endpoint,
            since: Time(row.created),
            is_latest: row.latest,
        });
        Ok(EngineStatus { version, deployments: deployments.collect(), runs: states })
    }

    /// The version of the server.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub async fn version(&self) -> Result<String, EngineError> {
        let body = self.ask_admin(&Request::get(&["version"])).await?;
        self.parsed::<Version>(&body).map(|version| version.version)
    }

    /// The time at the engine. Clocks of workers and servers must agree to 1 s.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub async fn time(&self) -> Result<Time, EngineError> {
        #[derive(Deserialize)]
        struct Now {
            now: i64,
        }
        let sql = "SELECT CAST(to_timestamp_millis(now()) AS BIGINT) AS now";
        let now = self.query::<Now>(sql).await?.into_iter().next();
        let none = || EngineError::Invalid { url: self.admin_url(), why: "it has no time".to_owned() };
        now.map(|row| Time(row.now)).ok_or_else(none)
    }

    /// Runs that are not over, the oldest first, at most `limit`.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub async fn runs(&self, filter: RunFilter<'_>, limit: u32) -> Result<Vec<RunAtWork>, EngineError> {
        let failing = match filter {
            RunFilter::All | RunFilter::Thread(_) => 2,
            RunFilter::Stuck => STUCK,
        };
        let steps = self.invocations(STEP, &format!("retry_count >= {failing}"), limit).await?;
        let callers: Vec<_> = steps.iter().filter_map(|step| step.caller.as_deref()).map(quoted).collect();
        let condition = match filter {
            RunFilter::All => "true".to_owned(),
            RunFilter::Thread(thread) => format!("target_service_key = {}", quoted(thread.as_str())),
            RunFilter::Stuck => {
                let callers = if callers.is_empty() { "''".to_owned() } else { callers.join(", ") };
                format!("(status = 'paused' OR retry_count >= {STUCK} OR id IN ({callers}))")
            }
        };
        let runs =
            self.invocations(RUN, &format!("target_handler_name = 'drive' AND {condition}"), limit).await?;
        let mut runs: Vec<_> = runs.into_iter().map(|run| at_work(run, &steps)).collect();
        if let RunFilter::Stuck | RunFilter::Thread(_) = filter {
            let of = if let RunFilter::Thread(thread) = filter { Some(thread) } else { None };
            runs.extend(self.lost(of, limit).await?);
        }
        runs.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(runs)
    }

    /// Resumes the paused runs of a thread, and makes those that back off try again at once. `latest` moves them to the
    /// workers that were registered last; default those that they started with. Returns how many.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub async fn resume(&self, thread: &ThreadId, latest: bool) -> Result<usize, EngineError> {
        let runs = self.runs(RunFilter::Thread(thread), 100).await?;
        let mut resumed = 0;
        for run in runs {
            let Some(id) = run.invocation else { continue };
            let query = match run.state {
                RunState::Paused if latest => Some(("deployment", "latest")),
                RunState::Paused | RunState::BackingOff => None,
                RunState::Queued | RunState::Running | RunState::Waiting | RunState::Lost => continue,
            };
            let path = ["invocations", &*id, "resume"];
            let asked = Request::<()> { method: Method::PATCH, path: &path, query, body: None };
            self.ask_admin(&asked).await?;
            resumed += 1;
        }
        Ok(resumed)
    }

    /// Ends the invocations of a thread's runs at the engine, and waits until nothing writes to the thread's log any longer.
    pub(super) async fn end_runs(&self, thread: &ThreadId) -> Result<(), EngineError> {
        let key = format!("target_service_key = {}", quoted(thread.as_str()));
        let drives = format!("target_handler_name = 'drive' AND {key}");
        for run in self.invocations(RUN, &drives, 100).await? {
            let path = ["invocations", &*run.id, "kill"];
            let asked = Request::<()> { method: Method::PATCH, path: &path, query: None, body: None };
            match self.ask_admin(&asked).await {
                // It ended meanwhile.
                Ok(_) | Err(EngineError::Failed { status: 404 | 409, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let ended = async {
            while !(self.invocations(RUN, &drives, 1).await?.is_empty()
                && self.invocations(LOG, &key, 1).await?.is_empty())
            {
                tokio::time::sleep(ENDS.1).await;
            }
            Ok(())
        };
        let slow = |_| EngineError::NotEnded(thread.clone());
        tokio::time::timeout(ENDS.0, ended).await.map_err(slow)?
    }

    /// How many runs are not over, by a column.
    async fn count(&self, column: &str) -> Result<BTreeMap<String, u64>, EngineError> {
        let sql = format!(
            "SELECT {column} AS of, COUNT(*) AS count FROM sys_invocation \
             WHERE target_service_name = '{RUN}' AND target_handler_name = 'drive' \
             AND status <> 'completed' GROUP BY {column}"
        );
        let rows = self.query::<Count>(&sql).await?;
        Ok(rows.into_iter().filter_map(|row| Some((row.of?, row.count))).collect())
    }

    async fn invocations(
        &self,
        service: &str,
        condition: &str,
        limit: u32,
    ) -> Result<Vec<InvocationRow>, EngineError> {
        let sql = format!(
            "SELECT id, target_service_key AS thread, status, CAST(created_at AS BIGINT) AS created, \
             retry_count AS attempts, last_failure AS error, invoked_by_id AS caller, \
             COALESCE(pinned_deployment_id, last_attempt_deployment_id) AS deployment FROM sys_invocation \
             WHERE target_service_name = '{service}' AND status <> 'completed' AND {condition} \
             ORDER BY created_at LIMIT {limit}"
        );
        self.query(&sql).await
    }

    /// Threads that have a run which the engine does not have.
    async fn lost(&self, of: Option<&ThreadId>, limit: u32) -> Result<Vec<RunAtWork>, EngineError> {
        let of =
            of.map(|thread| format!("AND service_key = {}", quoted(thread.as_str()))).unwrap_or_default();
        let sql = format!(
            "SELECT service_key AS key FROM state WHERE service_name = '{THREAD}' AND key = 'state' {of} \
             AND value_utf8 LIKE '%\"status\":{{\"running\":%' AND service_key NOT IN \
             (SELECT target_service_key FROM sys_invocation WHERE target_service_name = '{RUN}' \
             AND status <> 'completed') LIMIT {limit}"
        );
        let lost = self.query::<Key>(&sql).await?.into_iter().map(|row| RunAtWork {
            thread: row.key.into(),
            invocation: None,
            state: RunState::Lost,
            since: None,
            deployment: None,
            failures: Vec::new(),
        });
        Ok(lost.collect())
    }

    pub(super) async fn query<R: DeserializeOwned>(&self, sql: &str) -> Result<Vec<R>, EngineError> {
        let body = serde_json::json!({ "query": sql });
        let body = self.ask_admin(&Request::post(&["query"], &body)).await?;
        self.parsed::<Rows<R>>(&body).map(|rows| rows.rows)
    }

    fn parsed<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, EngineError> {
        let invalid =
            |error: serde_json::Error| EngineError::Invalid { url: self.admin_url(), why: error.to_string() };
        serde_json::from_slice(body).map_err(invalid)
    }
}

fn at_work(run: InvocationRow, steps: &[InvocationRow]) -> RunAtWork {
    let of_run = |step: &&InvocationRow| step.caller.as_deref() == Some(&*run.id);
    let steps = steps.iter().filter(of_run).map(|step| failure(step, true));
    let own = run.error.is_some().then(|| failure(&run, false));
    RunAtWork {
        failures: own.into_iter().chain(steps).collect(),
        thread: run.thread.unwrap_or_default().into(),
        state: RunState::of(&run.status),
        since: Some(Time(run.created)),
        invocation: Some(run.id),
        deployment: run.deployment,
    }
}

fn failure(row: &InvocationRow, is_step: bool) -> Failure {
    Failure { attempts: row.attempts.unwrap_or_default(), error: row.error.clone(), is_step }
}

/// A text as a literal of SQL.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_cannot_leave_its_literal() {
        assert_eq!(quoted("a' OR '1'='1"), "'a'' OR ''1''=''1'");
    }

    #[test]
    fn a_run_has_the_failures_of_its_steps() {
        let row = |id: &str, caller: Option<&str>, error: Option<&str>| InvocationRow {
            id: id.to_owned(),
            thread: Some("ada".to_owned()),
            status: "suspended".to_owned(),
            created: 7,
            attempts: Some(3),
            error: error.map(ToOwned::to_owned),
            deployment: None,
            caller: caller.map(ToOwned::to_owned),
        };
        let steps = [row("inv_2", Some("inv_1"), Some("lost")), row("inv_3", Some("inv_9"), None)];
        let run = at_work(row("inv_1", None, None), &steps);
        let failures = vec![Failure { attempts: 3, error: Some("lost".to_owned()), is_step: true }];
        assert_eq!((run.state, run.failures), (RunState::Waiting, failures));
    }
}
