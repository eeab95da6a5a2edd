//! `theta-bench measure`, which people do not call: the process that has the nodes, or the wires, and does what it is told.

mod collector;
mod group;
mod load;
mod ping;
mod stages;
pub(crate) mod usage;

use std::{
    io::{self, BufRead, Write},
    path::Path,
    time::Duration,
};

use theta::exit::Failure;
use theta_schemes::Suite;
use theta_wan::Profile;

pub(super) use self::stages::ORDER as STAGES;
use self::{
    group::{Group, Making},
    ping::Wires,
};
use super::protocol::{Answer, Opening, Order, Setup};
use crate::wan::{self, Reach};

/// What this process has.
enum Subject {
    Group(Box<Group>),
    Wires(Box<Wires>),
}

/// `theta-bench measure`: reads an [`Opening`] and then an [`Order`] a line from standard input, and writes an [`Answer`] to each. Ends with its
/// input.
pub(crate) fn run() -> Result<(), Failure> {
    let mut lines = io::stdin().lock().lines();
    let mut next = || -> Result<Option<String>, Failure> { lines.next().transpose().map_err(Failure::internal) };
    let Some(opening) = next()? else { return Ok(()) };
    let Opening { setup, home } = serde_json::from_str(&opening).map_err(Failure::internal)?;
    let (mut subject, places) = match set_up(setup, &home) {
        Ok(made) => made,
        Err(failure) => return answer(&Answer::Broken { code: failure.code(), text: failure.to_string() }),
    };
    answer(&Answer::Ready { places })?;
    while let Some(line) = next()? {
        let order: Order = serde_json::from_str(&line).map_err(Failure::internal)?;
        answer(&subject.carry_out(&order).unwrap_or_else(|failure| Answer::Failed(failure.to_string())))?;
    }
    Ok(())
}

fn answer(answer: &Answer) -> Result<(), Failure> {
    let line = serde_json::to_string(answer).map_err(Failure::internal)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| Failure::stdout(&error))
}

fn set_up(setup: Setup, home: &Path) -> Result<(Subject, Vec<String>), Failure> {
    match setup {
        Setup::Wires { profile } => {
            let wires = Wires::lay(profile.as_deref())?;
            let places = wires.places();
            Ok((Subject::Wires(Box::new(wires)), places))
        }
        Setup::Group { nodes, threshold, profile, suites, delivery, traced, patience_ms } => {
            let reach = profile.as_deref().map(|profile| wan::lay(profile, nodes)).transpose()?.unwrap_or(Reach::Here);
            let suite = |name: &String| name.parse::<Suite>().map_err(Failure::internal);
            let making = Making {
                nodes,
                threshold,
                suites: suites.iter().map(suite).collect::<Result<_, _>>()?,
                delivery: delivery.parse().map_err(Failure::internal)?,
                traced,
                patience: Duration::from_millis(patience_ms),
            };
            let group = Group::start(making, reach, home)?;
            let profile = profile.as_deref().map(Profile::find).transpose().map_err(Failure::internal)?;
            Ok((Subject::Group(Box::new(group)), places(profile.as_ref(), nodes)))
        }
    }
}

/// The names of the places of the nodes 1, 2, ....
fn places(profile: Option<&Profile>, nodes: u16) -> Vec<String> {
    let name = |node: u16| {
        let region = profile.and_then(|profile| profile.regions().get(profile.region_of(node)));
        region.map(|region| region.name.clone()).unwrap_or_default()
    };
    (1..=nodes).map(name).collect()
}

impl Subject {
    fn carry_out(&mut self, order: &Order) -> Result<Answer, Failure> {
        match (self, order) {
            (Self::Group(group), Order::Start) => Ok(Answer::Started(group.started())),
            (Self::Group(group), Order::Load { .. }) => Ok(Answer::Loaded(Box::new(group.load(order)?))),
            (Self::Group(group), Order::Ceremony { suite }) => {
                let held = group.hold(suite.parse().map_err(Failure::internal)?)?;
                Ok(Answer::Held(Box::new(held)))
            }
            (Self::Wires(wires), Order::Ping { .. }) => Ok(Answer::Pinged(wires.ping(order)?)),
            _ => Err(Failure::internal("an order for something else")),
        }
    }
}
