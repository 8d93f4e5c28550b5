//! What exactly was run.

use harness_core::{Json, canonical};
use serde::{Deserialize, Serialize};

/// Everything that tells two ways of running apart: agents, tools, model, policy, program.
///
/// Two runs whose [`digest`](Self::digest) is equal were runs of the same candidate: what differs between
/// them is not the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Candidate {
    /// The hash of the materialized descriptor.
    pub descriptor_hash: Option<String>,
    /// The version of the registry of tools.
    pub registry_version: Option<String>,
    /// The provider.
    pub provider: Option<String>,
    /// The model that the first agent asked for.
    pub model: Option<String>,
    /// The version of the policies.
    pub policy_version: Option<String>,
    /// The version of the program or package that ran it.
    pub package_version: Option<String>,
    /// SHA-256 of the canonical text of the six fields above, absent ones as `null`, in hexadecimal. Filled
    /// in when the record is made.
    pub digest: String,
}

impl Candidate {
    /// The digest of the other fields.
    pub fn computed_digest(&self) -> String {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Identity<'a> {
            descriptor_hash: &'a Option<String>,
            registry_version: &'a Option<String>,
            provider: &'a Option<String>,
            model: &'a Option<String>,
            policy_version: &'a Option<String>,
            package_version: &'a Option<String>,
        }
        let identity = Identity {
            descriptor_hash: &self.descriptor_hash,
            registry_version: &self.registry_version,
            provider: &self.provider,
            model: &self.model,
            policy_version: &self.policy_version,
            package_version: &self.package_version,
        };
        canonical::hash(&Json::of(&identity).unwrap_or_default())
    }

    /// The same candidate with its digest filled in.
    #[must_use]
    pub(super) fn sealed(mut self) -> Self {
        self.digest = self.computed_digest();
        self
    }
}
