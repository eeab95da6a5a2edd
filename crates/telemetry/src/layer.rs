//! Hears of the stages of requests.

use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use theta_names::WallTime;
use tokio::sync::mpsc::Sender;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Filter, Layer};

/// The target of the events that say how long a stage took.
const TARGET: &str = "theta::stage";
/// The longest name of a stage or scheme that is taken, in bytes.
const LONGEST: usize = 64;

/// A stage of one request that is over.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Heard {
    /// The instance's id.
    pub(crate) instance: [u8; 32],
    pub(crate) stage: String,
    pub(crate) scheme: String,
    pub(crate) took: Duration,
    /// When it was over.
    pub(crate) at: WallTime,
}

/// Passes on the stages of the requests that are traced.
#[derive(Debug)]
pub struct StageLayer {
    sender: Sender<Heard>,
    one_in: NonZeroU32,
    lost: Arc<AtomicU64>,
}

impl StageLayer {
    pub(crate) fn new(sender: Sender<Heard>, one_in: NonZeroU32) -> Self {
        Self { sender, one_in, lost: Arc::default() }
    }

    /// How many stages found the exporter busy.
    pub(crate) fn lost(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.lost)
    }

    /// What this layer wants to hear, and nothing else: whatever people want to see in the log.
    pub fn filter<S: Subscriber>() -> impl Filter<S> {
        Targets::new().with_target(TARGET, LevelFilter::DEBUG)
    }
}

/// Whether an instance is traced: the same answer at all nodes that trace one in so many.
fn is_sampled(instance: &[u8; 32], one_in: NonZeroU32) -> bool {
    let [.., a, b, c, d] = *instance;
    u32::from_be_bytes([a, b, c, d]) % one_in == 0
}

impl<S: Subscriber> Layer<S> for StageLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() != TARGET {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let Some(heard) = fields.heard(WallTime::now()) else { return };
        if is_sampled(&heard.instance, self.one_in) && self.sender.try_send(heard).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The fields of an event.
#[derive(Debug, Default)]
struct Fields {
    instance: Option<[u8; 32]>,
    stage: Option<String>,
    scheme: Option<String>,
    micros: Option<f64>,
}

impl Fields {
    /// `None` without an instance: such stages come before the request has one.
    fn heard(self, at: WallTime) -> Option<Heard> {
        let took = Duration::try_from_secs_f64(self.micros? / 1e6).ok()?;
        Some(Heard { instance: self.instance?, stage: self.stage?, scheme: self.scheme?, took, at })
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        if field.name() == "micros" {
            self.micros = Some(value);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let place = match field.name() {
            "stage" => &mut self.stage,
            "scheme" => &mut self.scheme,
            _ => return,
        };
        *place = (value.len() <= LONGEST).then(|| value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "instance" {
            let mut id = [0; 32];
            self.instance = hex::decode_to_slice(format!("{value:?}"), &mut id).ok().map(|()| id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_so_many_is_taken_and_the_same_everywhere() {
        let ids = (0_u32..10_000).map(|number| {
            let mut id = [7; 32];
            id[28..].copy_from_slice(&number.wrapping_mul(2_654_435_761).to_be_bytes());
            id
        });
        let all = NonZeroU32::MIN;
        let some = NonZeroU32::new(100).unwrap();
        let taken = ids.clone().filter(|id| is_sampled(id, some)).count();
        assert!((60..160).contains(&taken), "{taken}");
        assert!(ids.into_iter().all(|id| is_sampled(&id, all)));
    }
}
