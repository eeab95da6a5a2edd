//! Experiments: TOML files that say what is measured.

use std::{fs, path::Path, str::FromStr, time::Duration};

use serde::Deserialize;
use theta::{exit::Failure, units};
use theta_schemes::{Suite, keys::AnyPublicKey};
use theta_sharing::Threshold;

use super::operation::Operation;
use crate::suites::matching as suites;

/// The built-in experiments, by name.
pub(super) const BUILT_IN: [(&str, &str); 4] = [
    ("one-round", include_str!("../../experiments/one-round.toml")),
    ("frost", include_str!("../../experiments/frost.toml")),
    ("dealer", include_str!("../../experiments/dealer.toml")),
    ("rsa", include_str!("../../experiments/rsa.toml")),
];

/// With `--quick`, longer plaintexts are skipped; in bytes.
const QUICK_PAYLOAD: u64 = 64 << 10;
/// With `--quick`, larger thresholds are skipped.
const QUICK_THRESHOLD: u16 = 100;
/// With `--quick`, how long each operation is repeated.
const QUICK_TIME: Duration = Duration::from_millis(20);

/// What is measured: every combination of the lists.
#[derive(Debug)]
pub(super) struct Experiment {
    /// Its name: that of a built-in one, or the file's.
    pub(super) name: String,
    /// One line for people.
    pub(super) description: String,
    /// The suites of the keys.
    pub(super) suites: Vec<Suite>,
    /// The thresholds: any k of n.
    pub(super) groups: Vec<Threshold>,
    /// Sizes of plaintexts, in bytes.
    pub(super) payloads: Vec<u64>,
    /// Sizes of messages to sign, in bytes.
    pub(super) messages: Vec<u64>,
    /// Sizes of RSA moduli, in bits.
    pub(super) rsa_bits: Vec<u32>,
    /// How long each operation is repeated.
    pub(super) time: Duration,
    operations: Option<Vec<Operation>>,
}

/// The contents of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    description: String,
    suites: Vec<String>,
    groups: Vec<(u16, u16)>,
    #[serde(default = "default_payloads")]
    payloads: Vec<String>,
    #[serde(default = "default_messages")]
    messages: Vec<String>,
    #[serde(default = "default_rsa_bits")]
    rsa_bits: Vec<u32>,
    #[serde(default = "default_time")]
    time: String,
    operations: Option<Vec<String>>,
}

fn default_payloads() -> Vec<String> {
    vec!["1KiB".to_owned()]
}

fn default_messages() -> Vec<String> {
    vec!["256B".to_owned()]
}

fn default_rsa_bits() -> Vec<u32> {
    vec![2048]
}

fn default_time() -> String {
    "100ms".to_owned()
}

impl Experiment {
    /// A built-in experiment, or the one in the file of this name.
    pub(super) fn load(name: &str) -> Result<Self, Failure> {
        if let Some((name, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            return Self::parse(name, text);
        }
        let path = Path::new(name);
        if !path.exists() && path.extension().is_none() {
            let known = BUILT_IN.map(|(name, _)| name).join(", ");
            return Err(Failure::Usage(format!(
                "no experiment {name:?}: the built-in ones are {known}; or name a file"
            )));
        }
        let text = fs::read_to_string(path).map_err(|error| Failure::reading(path, &error))?;
        let stem = path.file_stem().map_or_else(|| name.to_owned(), |stem| stem.to_string_lossy().into_owned());
        Self::parse(&stem, &text).map_err(|failure| match failure {
            Failure::Usage(text) => Failure::Usage(format!("{}: {text}", path.display())),
            other => other,
        })
    }

    /// Reads the text of a file.
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, Failure> {
        let file: File = toml::from_str(text).map_err(|error| {
            Failure::Usage(format!("not an experiment: {}", error.to_string().trim_end().replace('\n', " ")))
        })?;
        let experiment = Self {
            name: name.to_owned(),
            description: file.description,
            suites: suites(&file.suites)?,
            groups: all(file.groups, |(k, n)| Threshold::new(k, n).map_err(|error| error.to_string()))?,
            payloads: all(file.payloads, |text| Ok(units::Bytes::from_str(&text)?.0))?,
            messages: all(file.messages, |text| Ok(units::Bytes::from_str(&text)?.0))?,
            rsa_bits: all(file.rsa_bits, |bits| match bits {
                2048 | 3072 | 4096 => Ok(bits),
                _ => Err(format!("RSA keys have 2048, 3072 or 4096 bits, not {bits}")),
            })?,
            time: units::parse_duration(&file.time).map_err(Failure::Usage)?,
            operations: file.operations.map(|names| all(names, |name| Operation::from_str(&name))).transpose()?,
        };
        if experiment.suites.is_empty() || experiment.groups.is_empty() {
            return Err(Failure::Usage("an experiment takes at least one suite and one group size".to_owned()));
        }
        if experiment.payloads.iter().chain(&experiment.messages).any(|size| *size > 1 << 30) {
            return Err(Failure::Usage("payloads and messages are at most 1GiB here".to_owned()));
        }
        Ok(experiment)
    }

    /// Shortens the experiment: small groups, short plaintexts, few repetitions.
    pub(super) fn quicken(&mut self) {
        self.time = self.time.min(QUICK_TIME);
        self.payloads.retain(|size| *size <= QUICK_PAYLOAD);
        self.groups.retain(|threshold| threshold.k() <= QUICK_THRESHOLD);
    }

    /// Keeps only the suites that match.
    pub(super) fn restrict(&mut self, patterns: &[String]) -> Result<(), Failure> {
        let wanted = suites(patterns)?;
        self.suites.retain(|suite| wanted.contains(suite));
        Ok(())
    }

    /// Whether an operation is measured.
    pub(super) fn wants(&self, operation: Operation) -> bool {
        self.operations.as_ref().is_none_or(|wanted| wanted.contains(&operation))
    }

    /// The sizes of a suite's moduli in bits; for curves only `None`.
    pub(super) fn moduli(&self, suite: Suite) -> Vec<Option<u32>> {
        if is_rsa(suite) { self.rsa_bits.iter().copied().map(Some).collect() } else { vec![None] }
    }

    /// The number of keys to deal, which the progress bar counts.
    pub(super) fn keys(&self) -> usize {
        self.suites.iter().map(|suite| self.moduli(*suite).len() * self.groups.len()).sum()
    }
}

/// Whether the keys of a suite are RSA keys.
pub(super) fn is_rsa(suite: Suite) -> bool {
    suite.group() == "RSA"
}

/// The name of a key's group; for an RSA key it includes the size.
pub(super) fn group_label(public: &AnyPublicKey, bits: Option<u32>) -> String {
    bits.map_or_else(|| public.suite().group().to_owned(), |bits| format!("RSA-{bits}"))
}

fn all<A, B>(items: Vec<A>, parse: impl Fn(A) -> Result<B, String>) -> Result<Vec<B>, Failure> {
    items.into_iter().map(parse).collect::<Result<_, _>>().map_err(Failure::Usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_experiments_are_sound_and_cover_every_suite() {
        let all: Vec<Experiment> = BUILT_IN.iter().map(|(name, _)| Experiment::load(name).unwrap()).collect();
        for suite in Suite::ALL {
            assert!(all.iter().any(|experiment| experiment.suites.contains(&suite)), "{suite}");
        }
        assert!(all.iter().all(|experiment| !experiment.description.is_empty() && experiment.keys() > 0));
    }

    #[test]
    fn mistakes_are_named() {
        let with = |line: &str| {
            let text = format!("description = \"x\"\n{line}");
            Experiment::parse("x", &text).map(drop).map_err(|failure| failure.to_string())
        };
        assert_eq!(with("suites = [\"all\"]\ngroups = [[3, 7]]"), Ok(()));
        for (line, words) in [
            ("suites = [\"sg03\"]\ngroups = [[3, 7]]", "unknown suite \"sg03\""),
            ("suites = [\"sg03*\"]\ngroups = [[3, 7]]", "no suite's name begins with \"sg03\""),
            ("suites = [\"all\"]\ngroups = [[8, 7]]", "8"),
            ("suites = [\"all\"]\ngroups = []", "at least one"),
            ("suites = [\"all\"]\ngroups = [[3, 7]]\noperations = [\"jump\"]", "no operation \"jump\""),
            ("suites = [\"all\"]\ngroups = [[3, 7]]\npayloads = [\"x\"]", "not a size"),
            ("suites = [\"all\"]\ngroups = [[3, 7]]\nrsa_bits = [1024]", "2048, 3072 or 4096"),
            ("suites = [\"all\"]\ngroup = [[3, 7]]", "unknown field"),
        ] {
            let refusal = with(line).unwrap_err();
            assert!(refusal.contains(words), "{refusal}");
        }
    }
}
