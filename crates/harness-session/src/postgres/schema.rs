//! The tables, in the schema `harness` of the database.

use tokio_postgres::Client;

/// Version of the tables that is written, and the newest that is read.
pub(super) const VERSION: u32 = 2;

/// The lock of those who make or migrate the tables: `HSes`.
const MIGRATING: i64 = 0x4853_6573;

/// The steps from each version to the next. A released step never changes.
///
/// `lines` of a thread is how many it has; `writer` is the token of its last owner: what an owner whose connection broke
/// still tries to write is refused. `append` puts lines behind the first `before` ones: what is behind these was left by
/// an append of the same owner whose answer was lost. It is a function, so that it is one transaction in one round trip.
const MIGRATIONS: [&str; VERSION as usize] = ["
    CREATE TABLE harness.threads (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text COLLATE \"C\" NOT NULL UNIQUE,
        lines bigint NOT NULL DEFAULT 0,
        writer text NOT NULL
    );
    CREATE TABLE harness.lines (
        thread bigint NOT NULL REFERENCES harness.threads ON DELETE CASCADE,
        number bigint NOT NULL,
        line text NOT NULL,
        PRIMARY KEY (thread, number)
    );
    CREATE FUNCTION harness.append(thread_name text, token text, before bigint, added text[]) RETURNS boolean
    LANGUAGE plpgsql AS $$
    DECLARE
        owned bigint;
        there bigint;
    BEGIN
        SELECT id, lines INTO owned, there FROM harness.threads
            WHERE name = thread_name AND writer = token FOR UPDATE;
        IF owned IS NULL OR there < before THEN
            RETURN false;
        END IF;
        IF there > before THEN
            DELETE FROM harness.lines WHERE thread = owned AND number > before;
        END IF;
        INSERT INTO harness.lines
            SELECT owned, before + new.number, new.line FROM unnest(added) WITH ORDINALITY AS new (line, number);
        UPDATE harness.threads SET lines = before + cardinality(added) WHERE id = owned;
        RETURN true;
    END $$;
    CREATE TABLE harness.quarantine (
        thread text NOT NULL,
        at timestamptz NOT NULL DEFAULT now(),
        line text NOT NULL
    );
    CREATE TABLE harness.artifacts (
        sha256 text PRIMARY KEY,
        holders text NOT NULL,
        content bytea NOT NULL
    );
    CREATE TABLE harness.checkpoints (
        run bytea NOT NULL,
        number bigint NOT NULL,
        content text NOT NULL,
        PRIMARY KEY (run, number)
    );
", "
    CREATE TABLE harness.storage (
        key bytea PRIMARY KEY,
        value text NOT NULL
    );
"];

/// Reason why a database cannot be used.
pub(super) enum Unusable {
    Refused(tokio_postgres::Error),
    Newer(i64),
}

impl From<tokio_postgres::Error> for Unusable {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Refused(error)
    }
}

/// Makes the tables, or brings older ones up to date.
pub(super) async fn prepare(client: &mut Client) -> Result<(), Unusable> {
    if version(client).await? == Some(VERSION.into()) {
        return Ok(());
    }
    let transaction = client.transaction().await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATING]).await?;
    let batch = "CREATE SCHEMA IF NOT EXISTS harness; CREATE TABLE IF NOT EXISTS harness.version (number bigint NOT NULL)";
    transaction.batch_execute(batch).await?;
    let found = transaction.query_opt("SELECT number FROM harness.version", &[]).await?;
    let found = found.map_or(Ok(0), |row| row.try_get(0))?;
    if found > VERSION.into() {
        return Err(Unusable::Newer(found));
    }
    for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.batch_execute(migration).await?;
    }
    transaction.execute("DELETE FROM harness.version", &[]).await?;
    transaction.execute("INSERT INTO harness.version VALUES ($1)", &[&i64::from(VERSION)]).await?;
    Ok(transaction.commit().await?)
}

/// The version of the tables; `None` if there are none.
async fn version(client: &Client) -> Result<Option<i64>, tokio_postgres::Error> {
    let there = client.query_one("SELECT to_regclass('harness.version') IS NOT NULL", &[]).await?;
    if !there.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    let row = client.query_opt("SELECT number FROM harness.version", &[]).await?;
    row.map(|row| row.try_get(0)).transpose()
}
