//! A build without the feature `postgres`: no such database can be opened.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::jsonl::Owner;
use crate::search::{Hit, Query};

#[derive(Clone, Debug)]
pub(crate) enum Rows {}

#[derive(Debug)]
pub(crate) enum Claim {}

impl Claim {
    pub(crate) fn left_by(&self) -> Option<&Owner> {
        match *self {}
    }

    pub(crate) fn holds(&self) -> bool {
        match *self {}
    }
}

impl Rows {
    pub(crate) fn open(_: &Path, _: &str) -> Result<Self, Error> {
        Err(Error::NoPostgres)
    }

    pub(crate) fn threads(_: &Path) -> Result<Vec<String>, Error> {
        Err(Error::NoPostgres)
    }

    pub(crate) fn search(_: &Path, _: &Query, _: usize, _: &mut Vec<Hit>) -> Result<Vec<PathBuf>, Error> {
        Err(Error::NoPostgres)
    }

    pub(crate) fn claim(&self) -> Result<Claim, Error> {
        match *self {}
    }

    pub(crate) fn exists(&self) -> Result<bool, Error> {
        match *self {}
    }

    pub(crate) fn content(&self, _: u64, _: Option<u32>) -> Result<Vec<u8>, Error> {
        match *self {}
    }

    pub(crate) fn append(&self, _: &[u8], _: u64) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn set_aside(&self, _: &[u8]) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn remove(&self) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn replace(&self, _: &[u8], _: bool) -> Result<(), Error> {
        match *self {}
    }
}
