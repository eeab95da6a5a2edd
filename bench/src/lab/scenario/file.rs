//! What a scenario's file may contain, and which of it fits together.

use std::num::NonZeroU32;

use serde::Deserialize;
use theta::exit::Failure;
use theta_names::Delivery;

use super::{
    super::{ladder::Ladder, row::Measure},
    LONGEST, LOOPBACK, Network, Steady, all, size, time, usage,
};

/// The contents of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) description: String,
    pub(super) measure: Measure,
    #[serde(default)]
    pub(super) groups: Vec<(u16, u16)>,
    #[serde(default = "loopback_alone")]
    pub(super) profiles: Vec<String>,
    #[serde(default)]
    pub(super) suites: Vec<String>,
    #[serde(default = "to_all")]
    pub(super) delivery: Vec<String>,
    pub(super) payloads: Option<Vec<String>>,
    #[serde(default = "five_seconds")]
    pub(super) time: String,
    #[serde(default = "ten_seconds")]
    pub(super) patience: String,
    pub(super) ladder: Option<LadderTable>,
    pub(super) steady: Option<SteadyTable>,
    pub(super) payload: Option<PayloadTable>,
    pub(super) network: Option<NetworkTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LadderTable {
    first: f64,
    #[serde(default = "most")]
    most: f64,
    #[serde(default = "one_second")]
    limit: String,
    #[serde(default)]
    refine: u8,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SteadyTable {
    rate: Option<f64>,
    #[serde(default = "one")]
    traced: NonZeroU32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PayloadTable {
    pub(super) requests: NonZeroU32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NetworkTable {
    #[serde(default)]
    pings: Vec<String>,
    #[serde(default = "hundred")]
    count: NonZeroU32,
    #[serde(default)]
    ceremonies: bool,
}

fn loopback_alone() -> Vec<String> {
    vec![LOOPBACK.to_owned()]
}

fn to_all() -> Vec<String> {
    vec![Delivery::All.to_string()]
}

fn five_seconds() -> String {
    "5s".to_owned()
}

fn ten_seconds() -> String {
    "10s".to_owned()
}

fn one_second() -> String {
    "1s".to_owned()
}

const fn most() -> f64 {
    100_000.0
}

const fn one() -> NonZeroU32 {
    NonZeroU32::MIN
}

pub(super) const fn hundred() -> NonZeroU32 {
    match NonZeroU32::new(100) {
        Some(hundred) => hundred,
        None => NonZeroU32::MIN,
    }
}

impl File {
    /// A table that the measure has no use for is a misunderstanding.
    pub(super) fn check_tables(&self) -> Result<(), Failure> {
        let knee = self.measure == Measure::Steady && self.steady.as_ref().is_none_or(|table| table.rate.is_none());
        let tables = [
            ("[ladder]", self.ladder.is_some(), self.measure == Measure::Capacity || knee),
            ("[steady]", self.steady.is_some(), self.measure == Measure::Steady),
            ("[payload]", self.payload.is_some(), self.measure == Measure::Payload),
            ("[network]", self.network.is_some(), self.measure == Measure::Network),
            ("payloads", self.payloads.is_some(), self.measure != Measure::Network),
        ];
        for (name, given, useful) in tables {
            if given && !useful {
                let measure = self.measure.name();
                let why = if name == "[ladder]" && self.measure == Measure::Steady {
                    "with a rate there is no knee to look for".to_owned()
                } else {
                    format!("a scenario that measures {measure:?} has no use for it")
                };
                return Err(usage(format!("{name}: {why}")));
            }
        }
        let missing = match self.measure {
            Measure::Capacity => self.ladder.is_none().then_some("[ladder] with its first rate"),
            Measure::Steady => {
                (knee && self.ladder.is_none()).then_some("[ladder] with its first rate, or steady.rate")
            }
            Measure::Network => self.network.is_none().then_some("[network]"),
            _ => None,
        };
        match missing {
            Some(missing) => Err(usage(format!("a scenario that measures {:?} takes {missing}", self.measure.name()))),
            None => Ok(()),
        }
    }

    pub(super) fn ladder(&self) -> Result<Ladder, Failure> {
        let Some(table) = &self.ladder else { return Ok(Ladder::default()) };
        let rate = |name: &str, value: f64| {
            if (0.01..=1e6).contains(&value) {
                Ok(value)
            } else {
                Err(usage(format!("ladder.{name}: not a rate: {value}")))
            }
        };
        let ladder = Ladder {
            first: rate("first", table.first)?,
            most: rate("most", table.most)?,
            limit: time(&table.limit, LONGEST)?,
            refine: table.refine.min(8),
        };
        if ladder.most < ladder.first { Err(usage("ladder.most is below ladder.first")) } else { Ok(ladder) }
    }

    pub(super) fn steady(&self) -> Result<Steady, Failure> {
        let (rate, one_in) = self.steady.as_ref().map_or((None, one()), |table| (table.rate, table.traced));
        match rate {
            Some(rate) if !(0.01..=1e6).contains(&rate) => Err(usage(format!("steady.rate: not a rate: {rate}"))),
            rate => Ok(Steady { rate, one_in }),
        }
    }

    pub(super) fn network(&self) -> Result<Network, Failure> {
        let none = Network { pings: Vec::new(), count: hundred(), ceremonies: false };
        let Some(table) = &self.network else { return Ok(none) };
        let pings = all(&table.pings, |text| {
            size(text)
                .and_then(|bytes| if bytes > 0 { Ok(bytes) } else { Err("a ping has at least 1 byte".to_owned()) })
        })?;
        Ok(Network { pings, count: table.count, ceremonies: table.ceremonies })
    }
}
