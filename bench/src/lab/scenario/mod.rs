//! Scenarios: TOML files that say what is measured of whole groups.

mod file;

use std::{collections::BTreeSet, fs, num::NonZeroU32, path::Path, str::FromStr, time::Duration};

use theta::{exit::Failure, units};
use theta_names::Delivery;
use theta_schemes::Suite;
use theta_sharing::Threshold;
use theta_wan::Profile;

use self::file::{File, hundred};
use super::{ladder::Ladder, row::Measure};
use crate::suites;

/// The scenarios that come with the program, by name.
pub(super) const BUILT_IN: [(&str, &str); 8] = [
    ("capacity-7", include_str!("../../../scenarios/capacity-7.toml")),
    ("capacity-31", include_str!("../../../scenarios/capacity-31.toml")),
    ("capacity-127", include_str!("../../../scenarios/capacity-127.toml")),
    ("steady-31", include_str!("../../../scenarios/steady-31.toml")),
    ("steady-7", include_str!("../../../scenarios/steady-7.toml")),
    ("payload-7", include_str!("../../../scenarios/payload-7.toml")),
    ("ping", include_str!("../../../scenarios/ping.toml")),
    ("ceremonies", include_str!("../../../scenarios/ceremonies.toml")),
];

/// The profile that is none: the loopback device as it is.
pub(super) const LOOPBACK: &str = "loopback";
/// The longest that one point may send, so that a slip of the pen does not take a night.
const LONGEST: Duration = Duration::from_secs(3600);
/// The largest payload or message.
const LARGEST: u64 = 64 << 20;

/// What is measured: every combination of the lists.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    /// Its name: that of a built-in one, or the file's.
    pub(super) name: String,
    /// The text that it was read from, which a results folder keeps.
    pub(super) text: String,
    pub(super) description: String,
    /// What its points are mainly about.
    pub(super) measure: Measure,
    pub(super) groups: Vec<Threshold>,
    /// Names or paths of `theta-wan`'s, or [`LOOPBACK`].
    pub(super) profiles: Vec<String>,
    pub(super) suites: Vec<Suite>,
    pub(super) delivery: Vec<Delivery>,
    /// Plaintexts or messages, in bytes.
    pub(super) payloads: Vec<u64>,
    /// How long each point sends.
    pub(super) time: Duration,
    /// How long a request may take; what takes longer has failed.
    pub(super) patience: Duration,
    pub(super) ladder: Ladder,
    pub(super) steady: Steady,
    pub(super) payload: Payload,
    pub(super) network: Network,
}

/// How a steady state is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steady {
    /// Requests a second; `None`: the knee, which is looked for first.
    pub(super) rate: Option<f64>,
    /// One request in so many is traced.
    pub(super) one_in: NonZeroU32,
}

/// How payloads are measured: one request under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Payload {
    /// The most requests of each size.
    pub(super) requests: NonZeroU32,
}

/// What is measured of the network layer alone.
#[derive(Clone, Debug)]
pub(super) struct Network {
    /// Messages that are sent there and back, in bytes; none: no pings.
    pub(super) pings: Vec<u64>,
    /// How many of each.
    pub(super) count: NonZeroU32,
    /// Whether groups are started and make a key of each suite.
    pub(super) ceremonies: bool,
}

fn usage(text: impl Into<String>) -> Failure {
    Failure::Usage(text.into())
}

impl Scenario {
    /// Loads a built-in scenario by name, or a file.
    pub(super) fn load(name: &str) -> Result<Self, Failure> {
        if let Some((name, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            return Self::parse(name, text);
        }
        let path = Path::new(name);
        if !path.exists() && path.extension().is_none() {
            let known = BUILT_IN.map(|(name, _)| name).join(", ");
            return Err(usage(format!("no scenario {name:?}: the built-in ones are {known}; or name a file")));
        }
        let text = fs::read_to_string(path).map_err(|error| Failure::reading(path, &error))?;
        let stem = path.file_stem().map_or_else(|| name.to_owned(), |stem| stem.to_string_lossy().into_owned());
        Self::parse(&stem, &text).map_err(|failure| match failure {
            Failure::Usage(text) => usage(format!("{}: {text}", path.display())),
            other => other,
        })
    }

    /// Reads the text of a file.
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, Failure> {
        let file: File = toml::from_str(text)
            .map_err(|error| usage(format!("not a scenario: {}", error.to_string().trim_end().replace('\n', " "))))?;
        file.check_tables()?;
        let scenario = Self {
            name: name.to_owned(),
            text: text.to_owned(),
            measure: file.measure,
            groups: all(&file.groups, |(k, n)| Threshold::new(*k, *n).map_err(|error| error.to_string()))?,
            profiles: all(&file.profiles, |profile| check_profile(profile))?,
            suites: suites::matching(&file.suites)?,
            delivery: all(&file.delivery, |text| Delivery::from_str(text).map_err(|error| error.to_string()))?,
            payloads: all(&file.payloads.clone().unwrap_or_else(|| vec!["256B".to_owned()]), |text| size(text))?,
            time: time(&file.time, LONGEST)?,
            patience: time(&file.patience, LONGEST)?,
            ladder: file.ladder()?,
            steady: file.steady()?,
            payload: Payload { requests: file.payload.as_ref().map_or_else(hundred, |table| table.requests) },
            network: file.network()?,
            description: file.description,
        };
        scenario.check()?;
        Ok(scenario)
    }

    fn check(&self) -> Result<(), Failure> {
        let pings_alone = self.measure == Measure::Network && !self.network.ceremonies;
        if !pings_alone && (self.groups.is_empty() || self.suites.is_empty()) {
            return Err(usage("a scenario takes at least one suite and one group size, such as groups = [[3, 7]]"));
        }
        if pings_alone && self.network.pings.is_empty() {
            return Err(usage("[network]: nothing to measure: give pings = [\"64B\"] or ceremonies = true"));
        }
        if self.profiles.is_empty() || self.delivery.is_empty() || self.payloads.is_empty() {
            return Err(usage("profiles, delivery and payloads must not be empty lists: leave them out for the usual"));
        }
        for delivery in &self.delivery {
            if !self.suites.is_empty() && !self.suites.iter().any(|suite| suite.supports(*delivery)) {
                return Err(usage(format!("none of the suites has delivery {delivery}")));
            }
        }
        let far = self.profiles.iter().any(|profile| profile != LOOPBACK);
        if let Some(large) = self.groups.iter().find(|group| far && group.n() > theta_wan::MAX_NODES) {
            let room = theta_wan::MAX_NODES;
            return Err(usage(format!("profiles have room for {room} nodes, not {}", large.n())));
        }
        let measure = self.measure;
        if let Some(dealt) = self.suites.iter().find(|suite| measure == Measure::Network && suite.key_group().is_none())
        {
            return Err(usage(format!("keys of {dealt} take a dealer: the nodes cannot make one in a ceremony")));
        }
        Ok(())
    }
}

fn all<A, B>(items: &[A], parse: impl Fn(&A) -> Result<B, String>) -> Result<Vec<B>, Failure> {
    items.iter().map(parse).collect::<Result<_, _>>().map_err(Failure::Usage)
}

fn size(text: &str) -> Result<u64, String> {
    let bytes = units::Bytes::from_str(text)?.0;
    if bytes > LARGEST {
        Err(format!("{text} is more than the {} MiB that fit here", LARGEST >> 20))
    } else {
        Ok(bytes)
    }
}

fn time(text: &str, longest: Duration) -> Result<Duration, Failure> {
    let time = units::parse_duration(text).map_err(Failure::Usage)?;
    if time > longest { Err(usage(format!("{text} is longer than {}", units::human(longest)))) } else { Ok(time) }
}

fn check_profile(name: &str) -> Result<String, String> {
    if name != LOOPBACK {
        Profile::find(name).map_err(|error| format!("{error}; or {LOOPBACK}, for none"))?;
    }
    Ok(name.to_owned())
}

/// Names of the built-in scenarios of a measure.
pub(super) fn names_of(measure: Measure) -> BTreeSet<&'static str> {
    let is_of = |(name, text): &(&'static str, &'static str)| {
        Scenario::parse(name, text).ok().filter(|scenario| scenario.measure == measure).map(|_| *name)
    };
    BUILT_IN.iter().filter_map(is_of).collect()
}

#[cfg(test)]
mod tests;
