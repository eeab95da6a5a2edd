//! The file as it is written.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RegistryText {
    pub(super) name: String,
    #[serde(default)]
    pub(super) terms: TermsText,
    #[serde(default)]
    pub(super) member: Vec<MemberText>,
    #[serde(default)]
    pub(super) authority: Vec<AuthorityText>,
    pub(super) operators: Option<OperatorsText>,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TermsText {
    pub(super) authority_days: u32,
    pub(super) object_days: u32,
    pub(super) list_hours: u32,
    pub(super) clock_seconds: u32,
}

impl Default for TermsText {
    fn default() -> Self {
        Self { authority_days: 1_830, object_days: 400, list_hours: 48, clock_seconds: 600 }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MemberText {
    pub(super) handle: String,
    #[serde(default)]
    pub(super) asns: Vec<String>,
    #[serde(default)]
    pub(super) v4: Vec<String>,
    #[serde(default)]
    pub(super) v6: Vec<String>,
    pub(super) keys: Vec<String>,
    #[serde(default = "one")]
    pub(super) need: usize,
    #[serde(default = "objects")]
    pub(super) objects: usize,
}

/// More than nearly all members have, and few enough that no member takes all keys.
fn objects() -> usize {
    1_000
}

fn one() -> usize {
    1
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuthorityText {
    pub(super) name: String,
    pub(super) key: String,
    pub(super) public: String,
    pub(super) parent: Option<String>,
    pub(super) member: Option<String>,
    pub(super) certificate: String,
    pub(super) repository: String,
    pub(super) notify: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OperatorsText {
    pub(super) keys: Vec<String>,
    pub(super) need: usize,
}
