//! A build without the feature `sqlite`: no database can be opened.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::search::{Hit, Query};

#[derive(Clone, Debug)]
pub(crate) enum Rows {}

impl Rows {
    pub(crate) fn open(database: &Path, _: &str, _: bool) -> Result<Self, Error> {
        Err(Error::NoSqlite { path: database.into() })
    }

    pub(crate) fn threads(database: &Path) -> Result<Vec<String>, Error> {
        Err(Error::NoSqlite { path: database.into() })
    }

    pub(crate) fn search(
        database: &Path,
        _: &Query,
        _: usize,
        _: &mut Vec<Hit>,
    ) -> Result<Vec<PathBuf>, Error> {
        Err(Error::NoSqlite { path: database.into() })
    }

    pub(crate) fn exists(&self) -> Result<bool, Error> {
        match *self {}
    }

    pub(crate) fn content(&self, _: u64, _: Option<u32>) -> Result<Vec<u8>, Error> {
        match *self {}
    }

    pub(crate) fn append(&self, _: &[u8], _: u64, _: &'static str) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn remove(&self) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn replace(&self, _: &[u8], _: bool) -> Result<(), Error> {
        match *self {}
    }
}
