//! Decisions and reloads, counted.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use theta_policy::Reload;

/// Counters of decisions.
#[derive(Debug)]
pub(crate) struct AuthorityMetrics {
    decisions: Family<DecisionLabels, Counter>,
    reloads: Family<ReloadLabels, Counter>,
    exhausted: Family<LimitLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DecisionLabels {
    answer: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadLabels {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabels {
    limit: &'static str,
}

impl AuthorityMetrics {
    pub(crate) fn register(registry: &mut Registry, recorded: Counter) -> Self {
        let metrics = Self { decisions: Family::default(), reloads: Family::default(), exhausted: Family::default() };
        let policy = registry.sub_registry_with_prefix("theta_policy");
        policy.register("decisions", "Decisions about requests", metrics.decisions.clone());
        policy.register("reloads", "Readings of a changed policy file", metrics.reloads.clone());
        policy.register("quota_refusals", "Requests beyond what their client may hold", metrics.exhausted.clone());
        let audit = registry.sub_registry_with_prefix("theta_audit");
        audit.register("records", "Decisions written to the audit log", recorded);
        metrics
    }

    /// Counts a decision. `reason` is one of the policy's codes.
    pub(crate) fn decided(&self, allowed: bool, reason: &'static str) {
        let answer = if allowed { "allow" } else { "deny" };
        self.decisions.get_or_create(&DecisionLabels { answer, reason }).inc();
    }

    /// Counts a request beyond one of a client's limits.
    pub(crate) fn exhausted(&self, limit: &'static str) {
        self.exhausted.get_or_create(&LimitLabels { limit }).inc();
    }

    /// Counts a reading of the policy file; `None` if the file was refused.
    pub(crate) fn reloaded(&self, reload: Option<&Reload>) {
        let result = match reload {
            None => "refused",
            Some(reload) if reload.changed => "changed",
            Some(_) => "same",
        };
        self.reloads.get_or_create(&ReloadLabels { result }).inc();
    }
}
