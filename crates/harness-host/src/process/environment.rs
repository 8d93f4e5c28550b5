//! The environment variables that programs may be given.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

/// The variables that every program gets, if they are set: where programs, home and temporary files
/// are, who the user is, language and time zone. None of them holds a secret.
pub const PASSED: [&str; 9] =
    ["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

/// A snapshot of environment variables, from which each program is given its share.
///
/// `Debug` shows names only: values may be secrets.
///
/// ```
/// use harness_host::process::Environment;
///
/// let environment = Environment::from_iter([("PATH", "/usr/bin:/bin"), ("TOKEN", "s3cret")]);
/// assert_eq!(format!("{environment:?}"), r#"{"PATH", "TOKEN"}"#);
/// ```
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The variables of this process, as they are now.
    pub fn of_process() -> Self {
        std::env::vars_os().collect()
    }

    /// The value of a variable, if it is set.
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.0.get(name.as_ref()).map(OsString::as_os_str)
    }

    /// Those of the named variables that are set.
    pub fn share<'n>(&self, names: impl Iterator<Item = &'n str>) -> Self {
        names.filter_map(|name| Some((name, self.get(name)?))).collect()
    }

    /// Sets a variable.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.0.insert(name.into(), value.into());
    }

    /// All variables, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.0.iter()
    }
}

impl<K: Into<OsString>, V: Into<OsString>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
