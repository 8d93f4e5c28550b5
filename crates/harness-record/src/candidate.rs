//! Identity of a run's configuration.

use harness_core::{Json, canonical};
use serde::{Deserialize, Serialize};

/// Identity of a run's configuration: agents, tools, model, policy, program. Runs with equal [`digest`](Self::digest) had
/// the same configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Candidate {
    /// Hash of the materialized descriptor.
    pub descriptor_hash: Option<String>,
    /// Version of the tool registry.
    pub registry_version: Option<String>,
    /// Name of the provider.
    pub provider: Option<String>,
    /// Model of the first agent.
    pub model: Option<String>,
    /// Version of the policies.
    pub policy_version: Option<String>,
    /// Version of the program or package.
    pub package_version: Option<String>,
    /// SHA-256 of the canonical text of the fields above, with `null` for missing ones, in hexadecimal. Computed when
    /// the record is made.
    pub digest: String,
}

impl Candidate {
    /// Computes the digest of the other fields.
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

    /// Sets the digest.
    #[must_use]
    pub(super) fn sealed(mut self) -> Self {
        self.digest = self.computed_digest();
        self
    }
}
