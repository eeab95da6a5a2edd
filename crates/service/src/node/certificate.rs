//! The node's certificate: looked at, renewed in time, and announced when that fails. Its key stays, which is what others pin, so
//! that nobody else has to do anything.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::gauge::ConstGauge,
    registry::Unit,
};
use theta_names::WallTime;
use theta_network::{Identity, IdentityError, Subject, group::GroupNode};
use tokio::{task, time};

use crate::config::NodeConfig;

/// How often it is looked at: it has months to go when it is renewed.
const PAUSE: Duration = Duration::from_secs(6 * 60 * 60);

/// Keeps the certificate.
#[derive(Debug)]
pub(crate) struct CertificateKeeper {
    identity: Identity,
    subject: Subject,
    certificate: PathBuf,
    key: PathBuf,
    /// Why it could not be renewed when that was tried last.
    failure: Mutex<Option<String>>,
}

impl CertificateKeeper {
    /// For this member of the group.
    pub(super) fn new(identity: Identity, member: &GroupNode, config: &NodeConfig) -> Result<Arc<Self>, IdentityError> {
        Ok(Arc::new(Self {
            identity,
            subject: member.subject()?,
            certificate: config.certificate.clone(),
            key: config.private_key.clone(),
            failure: Mutex::default(),
        }))
    }

    /// When the present certificate ends, in seconds since 1970; 0 if it does not say so in a way that is understood.
    pub(crate) fn ends(&self) -> u64 {
        self.identity.ends().unwrap_or_default()
    }

    /// Renews the certificate if it is time to. What goes wrong is told in the log and to whoever asks; the old certificate stays.
    pub(super) fn look(&self) {
        let now = WallTime::now().seconds();
        if self.identity.is_due(now) {
            let renewed = self.identity.renew(&self.certificate, &self.key, &self.subject, now);
            if renewed.is_ok() {
                let days = self.identity.ends().map(|ends| ends.saturating_sub(now) / (24 * 60 * 60));
                tracing::info!(days, file = %self.certificate.display(), "the certificate was renewed; its key, which others pin, is the same");
            }
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = renewed.err().map(|error| error.to_string());
        }
        if let Some(warning) = self.warning() {
            tracing::warn!("{warning}");
        }
    }

    /// What the operator should know: that the certificate ends soon.
    pub(crate) fn warning(&self) -> Option<String> {
        let days = self.identity.days_to_warn_of(WallTime::now().seconds())?;
        let file = self.certificate.display();
        let when = match days {
            i64::MIN..0 => format!("the certificate {file} has ended"),
            0 => format!("the certificate {file} ends today"),
            _ => format!("the certificate {file} ends in {days} days"),
        };
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        Some(match failure.as_deref() {
            Some(failure) => format!("{when} and could not be renewed: {failure}"),
            None => format!("{when}: whoever issued it has to renew it, under the same key"),
        })
    }
}

/// Looks at the certificate until the node is gone.
pub(super) async fn watch(keeper: Weak<CertificateKeeper>) {
    loop {
        time::sleep(PAUSE).await;
        let Some(keeper) = keeper.upgrade() else { return };
        // A look that panics would be a fault of ours; the next one comes.
        let _ = task::spawn_blocking(move || keeper.look()).await;
    }
}

/// When the certificate ends, at each scrape.
#[derive(Debug)]
pub(super) struct CertificateCollector(pub(super) Arc<CertificateKeeper>);

impl Collector for CertificateCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let Some(ends) = self.0.identity.ends() else { return Ok(()) };
        let gauge = ConstGauge::new(i64::try_from(ends).unwrap_or(i64::MAX));
        let help = "When this node's certificate ends, in seconds since 1970";
        gauge.encode(encoder.encode_descriptor(
            "theta_certificate_end",
            help,
            Some(&Unit::Seconds),
            gauge.metric_type(),
        )?)
    }
}
