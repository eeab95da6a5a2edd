//! All points, one after the other.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::ValueEnum;
use theta::{connect, exit::Failure, output::Output};
use theta_cluster::Show;
use theta_knot::{
    places::Places,
    server::{Knot, PROGRAMS},
};
use tokio::sync::mpsc::UnboundedSender;

use super::{
    MeasureArgs,
    point::Point,
    rows::Row,
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

    /// Whether signers send digests, which can be said ahead.
    pub(super) const fn sends_digests(self) -> bool {
        matches!(self, Self::Ecdsap256sha256 | Self::Rsasha256)
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

/// Whether agents look at what is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Asking {
    /// Nodes sign what the name server asks for.
    Off,
    /// Nodes sign what their operators' agents consent to.
    On,
}

impl fmt::Display for Asking {
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

impl GroupSize {
    /// As tables have it.
    pub(super) fn name(self) -> String {
        format!("{} of {}", self.k, self.n)
    }
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

/// What is to be measured, and to whom each row goes. If nobody takes it any more, nothing more is measured.
pub(super) struct Grid {
    args: MeasureArgs,
    program: PathBuf,
    folder: PathBuf,
    show: Show,
    rows: UnboundedSender<Row>,
}

/// What all points are measured with.
struct Found {
    places: Places,
    /// The version of Knot DNS.
    knot: String,
}

/// What one point is about, besides who signs.
#[derive(Clone, Copy)]
struct Wanted {
    algorithm: Algorithm,
    names: usize,
    way: LookAhead,
    asking: Asking,
}

/// Nobody takes rows any more.
struct Left;

impl Grid {
    /// In this folder, which is empty.
    pub(super) const fn new(
        args: MeasureArgs,
        program: PathBuf,
        folder: PathBuf,
        output: Output,
        rows: UnboundedSender<Row>,
    ) -> Self {
        Self { args, program, folder, show: Show::new(output), rows }
    }

    pub(super) fn measure(&self) -> Result<(), Failure> {
        let places = Places::of_this_machine();
        places.check(&PROGRAMS).map_err(|error| failure(&error))?;
        let knot = Knot::version(&places).map_err(|error| failure(&error))?;
        self.show.say(format_args!("Knot DNS {knot}"));
        let found = Found { places, knot };
        let runtime = connect::runtime()?;
        // Nobody is left to be told that nobody is.
        let _ =
            self.all(&found, |dir, size| runtime.block_on(GroupSigner::start(&self.program, dir, size, &self.args)));
        Ok(())
    }

    fn all(&self, found: &Found, start: impl Fn(&Path, GroupSize) -> Result<GroupSigner, Failure>) -> Result<(), Left> {
        for beside in &self.args.beside {
            let signer = match beside {
                Beside::Softhsm if !found.places.has(SOFTHSM) => {
                    self.show.say("SoftHSM is left out: install Debian's package softhsm2");
                    continue;
                }
                Beside::Softhsm => Signer::Softhsm,
                Beside::Files => Signer::Files,
            };
            self.by(&signer, found)?;
        }
        for size in &self.args.groups {
            self.show.act(format_args!("A group, any {} of {}", size.k, size.n));
            match start(&self.folder.join(size.to_string()), *size) {
                Ok(group) => self.by(&Signer::Group(group), found)?,
                Err(failure) => self.without(*size, &found.knot, &failure)?,
            }
        }
        Ok(())
    }

    /// All zones and algorithms by one signer.
    fn by(&self, signer: &Signer, Found { places, knot }: &Found) -> Result<(), Left> {
        let possible = self.wanted(|algorithm| signer.can_look_ahead(algorithm));
        let possible = possible.filter(|wanted| wanted.asking == Asking::Off || signer.has_agents());
        for (number, Wanted { algorithm, names, way, asking }) in possible.enumerate() {
            let signed_by = signer.name();
            self.show
                .say(format_args!("{signed_by}, {algorithm}, {names} names, look-ahead {way}, agents {asking} ..."));
            let folder = self.folder.join(format!("{}-{number}", signed_by.replace(' ', "")));
            let is_ahead = way == LookAhead::On;
            let asks = asking == Asking::On;
            let point = Point { places, folder: &folder, algorithm, names, is_ahead, asks, args: &self.args };
            self.tell(Row { knot: knot.clone(), ..point.measure(signer) })?;
        }
        Ok(())
    }

    /// The same by a group that does not come into being.
    fn without(&self, size: GroupSize, knot: &str, failure: &Failure) -> Result<(), Left> {
        self.wanted(Algorithm::sends_digests).try_for_each(|Wanted { algorithm, names, way, asking }| {
            self.tell(Row {
                knot: knot.to_owned(),
                signer: size.name(),
                algorithm: algorithm.to_string(),
                look_ahead: way == LookAhead::On,
                agents: asking == Asking::On,
                names,
                objection: Some(failure.to_string()),
                failed: true,
                ..Row::default()
            })
        })
    }

    /// What is wanted of a signer that can look ahead with these algorithms.
    fn wanted(&self, can_look_ahead: impl Fn(Algorithm) -> bool) -> impl Iterator<Item = Wanted> {
        let MeasureArgs { algorithms, look_ahead, agents, names, .. } = &self.args;
        let ways = algorithms.iter().flat_map(move |algorithm| look_ahead.iter().map(move |way| (*algorithm, *way)));
        let possible = ways.filter(move |(algorithm, way)| *way == LookAhead::Off || can_look_ahead(*algorithm));
        let asked =
            possible.flat_map(move |(algorithm, way)| agents.iter().map(move |asking| (algorithm, way, *asking)));
        asked.flat_map(move |(algorithm, way, asking)| {
            names.iter().map(move |names| Wanted { algorithm, names: *names, way, asking })
        })
    }

    fn tell(&self, row: Row) -> Result<(), Left> {
        self.rows.send(row).map_err(|_| Left)
    }
}
