//! What a scenario asks for, point by point: which is measured next follows from the rows that there are.

use theta::exit::Failure;
use theta_names::Delivery;
use theta_schemes::{Purpose, Suite};
use theta_sharing::Threshold;
use theta_wan::Profile;

use super::{
    ladder::Step,
    protocol::{Order, Pace, Setup, Transport},
    row::{Kind, Measure, Row},
    scenario::{LOOPBACK, Scenario},
};
use crate::{machine::Machine, requests::Operation};

/// What one process measures: a group under one profile, or the wires of one.
pub(super) struct Work {
    pub(super) setup: Setup,
    pub(super) title: String,
    pub(super) series: Vec<Series>,
}

/// Points that follow from each other.
pub(super) struct Series {
    what: What,
    /// Every condition; results and rate apart.
    conditions: Row,
}

enum What {
    Ladder,
    Steady,
    Payload,
    Start,
    Ceremony,
    Ping { transport: Transport, peer: u16 },
}

/// One point to be measured.
#[derive(Debug)]
pub(super) struct Point {
    pub(super) order: Order,
    /// Its conditions; results are filled in.
    pub(super) row: Row,
}

/// Everything that a scenario measures.
pub(super) fn works(scenario: &Scenario) -> Result<Vec<Work>, Failure> {
    let mut works = Vec::new();
    for profile in &scenario.profiles {
        let pings = if scenario.measure == Measure::Network { scenario.network.pings.as_slice() } else { &[] };
        if !pings.is_empty() {
            works.push(wires(scenario, profile)?);
        }
        let with_groups = scenario.measure != Measure::Network || scenario.network.ceremonies;
        for group in scenario.groups.iter().filter(|_| with_groups) {
            for delivery in &scenario.delivery {
                works.push(of_group(scenario, profile, *group, *delivery));
            }
        }
    }
    Ok(works)
}

fn profile_of(name: &str) -> Option<String> {
    (name != LOOPBACK).then(|| name.to_owned())
}

fn wires(scenario: &Scenario, profile: &str) -> Result<Work, Failure> {
    let found = profile_of(profile).as_deref().map(Profile::find).transpose();
    let found = found.map_err(|error| Failure::Usage(error.to_string()))?;
    let regions = found.as_ref().map(|profile| profile.regions().to_vec()).unwrap_or_default();
    let peers = u16::try_from(regions.len().max(2)).map_err(Failure::internal)?;
    let mut series = Vec::new();
    for peer in 2..=peers {
        let place = found.as_ref().and_then(|found| regions.get(found.region_of(peer)));
        for bytes in &scenario.network.pings {
            for transport in Transport::ALL {
                let mut conditions = blank(scenario, Kind::Ping, profile);
                conditions.transport = transport.name().to_owned();
                conditions.peer = place.map_or_else(|| "here".to_owned(), |region| region.name.clone());
                conditions.payload_bytes = Some(*bytes);
                series.push(Series { what: What::Ping { transport, peer }, conditions });
            }
        }
    }
    Ok(Work { setup: Setup::Wires { profile: profile_of(profile) }, title: format!("pings, {profile}"), series })
}

fn of_group(scenario: &Scenario, profile: &str, group: Threshold, delivery: Delivery) -> Work {
    let suites: Vec<Suite> = scenario.suites.iter().copied().filter(|suite| suite.supports(delivery)).collect();
    let of_group = |kind| {
        let mut conditions = blank(scenario, kind, profile);
        (conditions.n, conditions.k) = (group.n(), group.k());
        conditions.delivery = delivery.to_string();
        conditions
    };
    let of_suite = |kind, suite: Suite| {
        let mut conditions = of_group(kind);
        (conditions.suite, conditions.scheme) = (suite.name().to_owned(), suite.scheme().to_owned());
        conditions.operation = operation(suite, kind).map(|operation| operation.to_string()).unwrap_or_default();
        conditions
    };
    let mut series = Vec::new();
    if scenario.measure == Measure::Network {
        series.push(Series { what: What::Start, conditions: of_group(Kind::Start) });
    }
    for suite in &suites {
        let mut add = |what, kind, payload: Option<u64>| {
            let concurrency = (kind == Kind::Payload).then_some(1);
            let conditions = Row { payload_bytes: payload, concurrency, ..of_suite(kind, *suite) };
            series.push(Series { what, conditions });
        };
        let first = scenario.payloads.first().copied();
        match scenario.measure {
            Measure::Capacity => {
                scenario.payloads.iter().for_each(|payload| add(What::Ladder, Kind::Capacity, Some(*payload)));
            }
            Measure::Steady => {
                if scenario.steady.rate.is_none() {
                    add(What::Ladder, Kind::Capacity, first);
                }
                scenario.payloads.iter().for_each(|payload| add(What::Steady, Kind::Steady, Some(*payload)));
            }
            Measure::Payload => {
                scenario.payloads.iter().for_each(|payload| add(What::Payload, Kind::Payload, Some(*payload)));
            }
            Measure::Network => add(What::Ceremony, Kind::Ceremony, None),
        }
    }
    let setup = Setup::Group {
        nodes: group.n(),
        threshold: group.k(),
        profile: profile_of(profile),
        suites: suites.iter().map(|suite| suite.name().to_owned()).collect(),
        delivery: delivery.to_string(),
        traced: (scenario.measure == Measure::Steady).then(|| scenario.steady.one_in.get()),
        patience_ms: u64::try_from(scenario.patience.as_millis()).unwrap_or(u64::MAX),
    };
    Work { setup, title: format!("any {} of {}, {profile}, {delivery}", group.k(), group.n()), series }
}

/// What keys of a suite are asked for; the contents are opened where payloads are what is measured.
fn operation(suite: Suite, kind: Kind) -> Option<Operation> {
    match (suite.purpose(), kind) {
        (_, Kind::Start | Kind::Ceremony | Kind::Ping) => None,
        (Purpose::Decrypt, Kind::Payload) => Some(Operation::Decrypt),
        (Purpose::Decrypt, _) => Some(Operation::Decapsulate),
        (Purpose::Sign, _) => Some(Operation::Sign),
        (Purpose::Coin, _) => Some(Operation::Coin),
    }
}

/// A row without results.
fn blank(scenario: &Scenario, kind: Kind, profile: &str) -> Row {
    let machine = Machine::look();
    Row {
        kind,
        scenario: scenario.name.clone(),
        commit: machine.commit().to_owned(),
        build: machine.build().to_owned(),
        cpu: machine.cpu().to_owned(),
        cores: u32::try_from(machine.cores()).unwrap_or(0),
        profile: profile.to_owned(),
        ..Row::empty(kind)
    }
}

impl Series {
    /// For people: which keys, which sizes.
    pub(super) fn title(&self) -> String {
        let Row { suite, payload_bytes, transport, peer, .. } = &self.conditions;
        let size = payload_bytes.map(|bytes| format!(" {}", theta::units::Bytes(bytes))).unwrap_or_default();
        match &self.what {
            What::Ladder => format!("{suite}{size} capacity"),
            What::Steady => format!("{suite}{size} steady"),
            What::Payload => format!("{suite}{size}"),
            What::Start => "start".to_owned(),
            What::Ceremony => format!("{suite} ceremony"),
            What::Ping { .. } => format!("{transport}{size} to {peer}"),
        }
    }

    /// The next point; `None` when all are among the rows.
    pub(super) fn next(&self, scenario: &Scenario, rows: &[Row]) -> Option<Point> {
        let mut done = rows.iter().filter(|row| row.is_like(&self.conditions));
        let row = self.conditions.clone();
        let milliseconds = u64::try_from(scenario.time.as_millis()).unwrap_or(u64::MAX);
        match &self.what {
            What::Ladder => {
                let steps: Vec<Step> = done.filter_map(Step::of).collect();
                let rate = scenario.ladder.next(&steps)?;
                Some(self.load(Row { rate: Some(rate), ..row }, Pace::Open { rate }, milliseconds))
            }
            _ if done.next().is_some() => None,
            What::Steady => {
                let rate = scenario.steady.rate.or_else(|| self.knee(scenario, rows))?;
                Some(self.load(Row { rate: Some(rate), ..row }, Pace::Open { rate }, milliseconds))
            }
            What::Payload => {
                let pace = Pace::Alone { requests: scenario.payload.requests.get() };
                Some(self.load(row, pace, milliseconds))
            }
            What::Start => Some(Point { order: Order::Start, row }),
            What::Ceremony => Some(Point { order: Order::Ceremony { suite: row.suite.clone() }, row }),
            What::Ping { transport, peer } => {
                let (count, bytes) = (scenario.network.count.get(), row.payload_bytes.unwrap_or(1));
                Some(Point { order: Order::Ping { transport: *transport, peer: *peer, bytes, count }, row })
            }
        }
    }

    fn load(&self, row: Row, pace: Pace, milliseconds: u64) -> Point {
        let (suite, payload, traced) = (row.suite.clone(), row.payload_bytes.unwrap_or(0), row.kind == Kind::Steady);
        let operation = suite.parse().ok().and_then(|suite| operation(suite, row.kind)).unwrap_or(Operation::Sign);
        Point { order: Order::Load { suite, operation, payload, pace, milliseconds, traced }, row }
    }

    /// The rate at the knee of the ladder of the same key.
    fn knee(&self, scenario: &Scenario, rows: &[Row]) -> Option<f64> {
        let payload_bytes = scenario.payloads.first().copied();
        let like = Row { kind: Kind::Capacity, payload_bytes, ..self.conditions.clone() };
        let steps: Vec<Step> = rows.iter().filter(|row| row.is_like(&like)).filter_map(Step::of).collect();
        scenario.ladder.knee(&steps).map(|step| step.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(measure: &str, rest: &str) -> Scenario {
        let text = format!(
            "description = \"x\"\nmeasure = \"{measure}\"\ngroups = [[2, 4]]\nsuites = [\"sg02-ristretto255\", \"frost-ed25519\"]\n{rest}"
        );
        Scenario::parse("x", &text).unwrap()
    }

    /// Measures everything as a group would that bears 50 a second; says what was asked for, and the rows.
    fn measured(scenario: &Scenario, mut rows: Vec<Row>) -> (Vec<String>, Vec<Row>) {
        let mut asked = Vec::new();
        for work in works(scenario).unwrap() {
            for series in &work.series {
                while let Some(point) = series.next(scenario, &rows) {
                    assert!(asked.len() < 200, "no end");
                    let rate = point.row.rate.unwrap_or(1.0);
                    asked.push(format!("{} {rate}", series.title()));
                    let p50 = Some(if rate < 50.0 { 2.0 / (1.0 - rate / 50.0) } else { 5_000.0 });
                    let throughput = Some(rate.min(50.0));
                    rows.push(Row { throughput, p50_ms: p50, p95_ms: p50, sent: 100, ..point.row });
                }
            }
        }
        (asked, rows)
    }

    #[test]
    fn what_has_been_measured_is_not_measured_again() {
        for scenario in [
            scenario("capacity", "profiles = [\"loopback\", \"lan\"]\n[ladder]\nfirst = 4\nrefine = 1"),
            scenario("steady", "payloads = [\"256B\", \"4KiB\"]\n[ladder]\nfirst = 4"),
            scenario("payload", "payloads = [\"1B\", \"1MiB\"]\n[payload]\nrequests = 3"),
            scenario("network", "profiles = [\"four-regions\"]\n[network]\npings = [\"64B\"]\nceremonies = true"),
        ] {
            let (asked, rows) = measured(&scenario, Vec::new());
            assert!(asked.len() >= 4 && asked.len() == rows.len(), "{asked:?}");
            for cut in 0..=rows.len() {
                let (again, whole) = measured(&scenario, rows[..cut].to_vec());
                assert_eq!((&again[..], whole.len()), (&asked[cut..], rows.len()), "only the rest is measured");
            }
        }
    }

    #[test]
    fn a_steady_state_is_at_the_knee() {
        let (asked, _) =
            measured(&scenario("steady", "payloads = [\"256B\", \"4KiB\"]\n[ladder]\nfirst = 4"), Vec::new());
        // 4, 8, 16, 32 and 64 were tried; throughput over latency is largest at 16 and 32, whichever is nearer to 25.
        assert_eq!(asked[4], "sg02-ristretto255 256 B capacity 64");
        assert!(
            asked[5].starts_with("sg02-ristretto255 256 B steady")
                && asked[6].starts_with("sg02-ristretto255 4 KiB steady")
        );
        assert!(["16", "32"].contains(&asked[5].split(' ').next_back().unwrap()), "{asked:?}");
        let (asked, _) = measured(&scenario("steady", "[steady]\nrate = 7"), Vec::new());
        assert_eq!(asked, ["sg02-ristretto255 256 B steady 7", "frost-ed25519 256 B steady 7"]);
    }

    #[test]
    fn pings_go_to_every_region() {
        let scenario = scenario("network", "profiles = [\"four-regions\", \"loopback\"]\n[network]\npings = [\"64B\"]");
        let (asked, rows) = measured(&scenario, Vec::new());
        assert_eq!(asked.len(), (3 + 1) * 2, "{asked:?}");
        assert!(rows.iter().any(|row| row.peer == "sydney" && row.transport == "mesh"));
        assert!(rows.iter().any(|row| row.peer == "here" && row.transport == "tcp"));
    }

    #[test]
    fn quorum_mode_is_for_those_that_have_it() {
        let scenario = scenario("capacity", "delivery = [\"all\", \"quorum\"]\n[ladder]\nfirst = 4");
        let works = works(&scenario).unwrap();
        assert_eq!(works.iter().map(|work| work.series.len()).collect::<Vec<_>>(), [2, 1]);
    }
}
