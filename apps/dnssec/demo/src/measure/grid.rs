//! All points, one after the other.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::ValueEnum;
use theta::exit::Failure;
use theta_cluster::Show;
use theta_knot::{places::Places, server::PROGRAMS};

use super::{
    MeasureArgs, Row,
    point::Point,
    signer::{GroupSigner, SOFTHSM, Signer},
};
use crate::knot_failure::failure;

/// An algorithm, as Knot calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Algorithm {
    /// Number 13.
    Ecdsap256sha256,
    /// Number 15.
    Ed25519,
    /// Number 8, with 2048 bits.
    Rsasha256,
}

impl Algorithm {
    /// The scheme of a group's keys.
    pub(super) const fn suite(self) -> &'static str {
        match self {
            Self::Ecdsap256sha256 => "ecdsa-p256",
            Self::Ed25519 => "frost-ed25519",
            Self::Rsasha256 => "sh00-pkcs1-sha256",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ecdsap256sha256 => "ecdsap256sha256",
            Self::Ed25519 => "ed25519",
            Self::Rsasha256 => "rsasha256",
        })
    }
}

/// What is measured beside groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Beside {
    /// The same PKCS#11 calls, to a module with the keys in files.
    Softhsm,
    /// Keys in Knot's own files.
    Files,
}

impl fmt::Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Softhsm => "softhsm",
            Self::Files => "files",
        })
    }
}

/// Whether the module has signed what Knot will ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LookAhead {
    /// It signs when it is asked.
    Off,
    /// It signs before it is asked, with the groups' keys of P-256 and RSA.
    On,
}

impl fmt::Display for LookAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::On => "on",
        })
    }
}

/// How many nodes there are, and how many of them sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupSize {
    pub(crate) k: u16,
    pub(crate) n: u16,
}

impl fmt::Display for GroupSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}of{}", self.k, self.n)
    }
}

impl FromStr for GroupSize {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text.split_once("of").and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
        numbers.filter(|(k, n)| k <= n).map(|(k, n)| Self { k, n }).ok_or("a group is as 2of3")
    }
}

/// What is to be measured.
pub(super) struct Grid<'a> {
    pub(super) args: &'a MeasureArgs,
    pub(super) program: PathBuf,
    pub(super) show: Show,
}

impl Grid<'_> {
    pub(super) async fn measure(&self) -> Result<Vec<Row>, Failure> {
        let places = Places::of_this_machine();
        places.check(&PROGRAMS).map_err(|error| failure(&error))?;
        let made = tempfile::Builder::new().prefix("theta-dnssec-").tempdir();
        let folder = made.map_err(|error| Failure::writing(&std::env::temp_dir(), &error))?;
        let mut rows = Vec::new();
        for beside in &self.args.beside {
            if *beside == Beside::Softhsm && !places.has(SOFTHSM) {
                self.show.say("SoftHSM is left out: install Debian's package softhsm2");
                continue;
            }
            let signer = match beside {
                Beside::Softhsm => Signer::Softhsm,
                Beside::Files => Signer::Files,
            };
            self.all(&signer, &places, folder.path(), &mut rows)?;
        }
        for size in &self.args.groups {
            self.show.act(format_args!("A group, any {} of {}", size.k, size.n));
            let dir = folder.path().join(size.to_string());
            let group = GroupSigner::start(&self.program, &dir, *size, self.args).await?;
            self.all(&Signer::Group(group), &places, folder.path(), &mut rows)?;
        }
        Ok(rows)
    }

    /// All zones and algorithms by one signer.
    fn all(&self, signer: &Signer, places: &Places, folder: &Path, rows: &mut Vec<Row>) -> Result<(), Failure> {
        for algorithm in &self.args.algorithms {
            let ways =
                self.args.look_ahead.iter().filter(|way| **way == LookAhead::Off || signer.can_look_ahead(*algorithm));
            for (names, way) in ways.flat_map(|way| self.args.names.iter().map(move |names| (names, *way))) {
                let folder = folder.join(format!("{}-{}", rows.len(), signer.name().replace(' ', "")));
                fs::create_dir(&folder).map_err(|error| Failure::writing(&folder, &error))?;
                self.show.say(format_args!("{}, {algorithm}, {names} names, look-ahead {way} ...", signer.name()));
                let is_ahead = way == LookAhead::On;
                let point =
                    Point { places, folder: &folder, algorithm: *algorithm, names: *names, is_ahead, args: self.args };
                let row = point.measure(signer)?;
                match &row.objection {
                    None => self.show.good(format_args!(
                        "{} signatures in {} ms, {:.0}/s",
                        row.signatures, row.signed_ms, row.a_second
                    )),
                    Some(objection) => self.show.say(format_args!("not signed: {objection}")),
                }
                if let Some(words) = &row.no_change {
                    self.show.say(format_args!("Knot takes no change: {words}"));
                }
                rows.push(row);
            }
        }
        Ok(())
    }
}
