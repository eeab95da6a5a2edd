//! The name server, which is operator 1's: Knot DNS with the PKCS#11 module, a client of the group like any other.

use std::{fs, path::Path, time::Duration};

use theta::exit::Failure;
use theta_knot::{
    places::Places,
    server::{Knot, PROGRAMS, Setup},
};

use crate::{
    agent::ZONE, knot_failure::failure, module::configure, operators::Operators, permission::NAME_SERVERS_CLIENT,
};

/// The algorithm as Knot calls it, and its number in signatures.
const ALGORITHM: &str = "ed25519";
const NUMBER: u8 = 15;
/// The time to live of all records, in seconds: that of the zone's copies.
const TTL: &str = "1";

/// A change of the zone: a name has this address alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    /// Without the zone's name.
    pub(crate) name: &'static str,
    pub(crate) address: &'static str,
    /// Whether the name had another one.
    pub(crate) moves: bool,
}

/// What `knot.conf` has about the zone, and where Knot is.
pub(crate) struct Plan {
    places: Places,
    config: String,
}

impl Plan {
    /// Makes sure that Knot is there.
    pub(crate) fn find() -> Result<Places, Failure> {
        let places = Places::of_this_machine();
        places.check(&PROGRAMS).map_err(|error| failure(&error))?;
        Ok(places)
    }

    /// Writes the module's configuration, and has `knot.conf` made, both as `theta pkcs11 config` prints them.
    pub(crate) fn new(places: Places, operators: &Operators, module: Option<&Path>) -> Result<Self, Failure> {
        let folder = operators.dir().join("name-server");
        fs::create_dir(&folder).map_err(|error| Failure::writing(&folder, &error))?;
        let theta = |words: &[&str]| operators.theta(words);
        Ok(Self { places, config: configure(theta, (NAME_SERVERS_CLIENT, module), &folder, ALGORITHM, &[])? })
    }

    /// Starts it with a zone that is not signed yet.
    pub(crate) fn start(&self, operators: &Operators, records: &str) -> Result<NameServer, Failure> {
        let folder = operators.dir().join("name-server");
        let setup = Setup { folder: &folder, zone: ZONE, records, config: &self.config };
        Knot::start(&self.places, setup).map(NameServer).map_err(|error| failure(&error))
    }
}

/// The running name server. It ends when this is dropped, and with this process.
pub(crate) struct NameServer(Knot);

impl NameServer {
    /// Waits until the zone is signed.
    pub(crate) fn await_signed(&self, patience: Duration) -> Result<(), Failure> {
        self.0.await_signed(patience).map_err(|error| failure(&error))
    }

    /// Has Knot make a change and sign it; whether it could. Otherwise the zone is as it was.
    pub(crate) fn make(&self, Change { name, address, moves }: Change) -> Result<bool, Failure> {
        let is_taken = self.0.tell(&["zone-begin", ZONE])
            && (!moves || self.0.tell(&["zone-unset", ZONE, name, "A"]))
            && self.0.tell(&["zone-set", ZONE, name, TTL, "A", address]);
        if !is_taken {
            return Err(Failure::Failed(format!(
                "Knot does not take a change of {name}.{ZONE}: {}",
                self.last_error()
            )));
        }
        // A transaction that cannot be signed is over.
        Ok(self.0.tell(&["zone-commit", ZONE]))
    }

    /// The address that the server gives for a name, with a signature by the zone's algorithm; `None` if it has none.
    pub(crate) fn address(&self, name: &str) -> Result<Option<String>, Failure> {
        let said = self.0.ask(&format!("{name}.{ZONE}")).map_err(|error| failure(&error))?;
        let signed = said.lines().any(|line| line.starts_with(&format!("A {NUMBER} 2 ")));
        Ok(said.lines().next().filter(|_| signed).map(str::to_owned))
    }

    /// Has the verifier of another house look at the whole zone, as the server has it now.
    pub(crate) fn verify(&self) -> Result<(), Failure> {
        if !self.0.tell(&["zone-flush", ZONE]) {
            return Err(Failure::Failed("Knot does not write the zone's file".to_owned()));
        }
        self.0.verify().map_err(|error| failure(&error))
    }

    /// Why Knot could not do what it was told last.
    pub(crate) fn last_error(&self) -> String {
        let said = self.0.said();
        said.lines().rev().find(|line| line.contains("error:")).unwrap_or("it says nothing").to_owned()
    }
}
