//! The file as it is written. What each field means is in `spec/policy.md`.

use serde::Deserialize;
use toml::{Spanned, value::Datetime};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyText {
    pub(super) format: Spanned<i64>,
    pub(super) limits: Option<LimitsText>,
    #[serde(default)]
    pub(super) client: Vec<Spanned<ClientText>>,
    #[serde(default)]
    pub(super) approver: Vec<Spanned<ApproverText>>,
    #[serde(default)]
    pub(super) agent: Vec<Spanned<AgentText>>,
    #[serde(default)]
    pub(super) rule: Vec<Spanned<RuleText>>,
    #[serde(default)]
    pub(super) signing: Vec<Spanned<SigningText>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClientText {
    pub(super) name: Spanned<String>,
    pub(super) certificates: Option<Spanned<ListText>>,
    pub(super) tokens: Option<Spanned<ListText>>,
    pub(super) signing_keys: Option<Spanned<ListText>>,
    pub(super) limits: Option<LimitsText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitsText {
    pub(super) instances: Option<Spanned<i64>>,
    pub(super) statement_bytes: Option<Spanned<i64>>,
    pub(super) submissions: Option<Spanned<String>>,
    pub(super) burst: Option<Spanned<i64>>,
    pub(super) streams: Option<Spanned<i64>>,
    pub(super) result_bytes: Option<Spanned<i64>>,
}

/// A list of texts.
pub(super) type ListText = Vec<Spanned<String>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApproverText {
    pub(super) name: Spanned<String>,
    pub(super) key: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleText {
    pub(super) name: Spanned<String>,
    pub(super) effect: Spanned<String>,
    pub(super) clients: Spanned<ListText>,
    pub(super) keys: Spanned<ListText>,
    pub(super) operations: Spanned<ListText>,
    pub(super) labels: Option<Spanned<ListText>>,
    pub(super) from: Option<Spanned<Datetime>>,
    pub(super) until: Option<Spanned<Datetime>>,
    pub(super) rate: Option<Spanned<String>>,
    pub(super) burst: Option<Spanned<i64>>,
    pub(super) approvals: Option<Spanned<ApprovalsText>>,
    pub(super) record: Option<Spanned<String>>,
    pub(super) agent: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentText {
    pub(super) name: Spanned<String>,
    pub(super) socket: Spanned<String>,
    pub(super) timeout_ms: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApprovalsText {
    pub(super) of: Spanned<ListText>,
    pub(super) need: Spanned<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SigningText {
    pub(super) name: Spanned<String>,
    pub(super) keys: Spanned<ListText>,
    pub(super) operations: Option<Spanned<ListText>>,
    pub(super) slot: Spanned<String>,
    pub(super) order: Option<Spanned<String>>,
    pub(super) race: Option<Spanned<String>>,
    pub(super) first: Option<Spanned<i64>>,
    pub(super) last: Option<Spanned<i64>>,
}
