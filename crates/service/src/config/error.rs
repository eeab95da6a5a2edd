//! Errors in configurations, in one line with place and remedy.

use std::{
    net::SocketAddr,
    num::{NonZeroU16, NonZeroUsize},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer, de::Error as _};
use theta_statements::Name;

/// Why a configuration was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {reason}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The system's message.
        reason: String,
    },
    /// The file is not a configuration.
    #[error("{}:{line}: {problem}", file.display())]
    Invalid {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong, and what would be right.
        problem: String,
    },
}

impl ConfigError {
    pub(super) fn from_toml(error: &toml::de::Error, text: &str, file: &Path) -> Self {
        let offset = error.span().map_or(0, |span| span.start);
        let before = text.get(..offset).unwrap_or_default();
        let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
        Self::Invalid { file: file.to_owned(), line, problem: explain(error.message()) }
    }
}

impl ConfigError {
    /// A problem in the first line that begins with one of these.
    pub(super) fn at(beginnings: &[&str], text: &str, file: &Path, problem: &str) -> Self {
        let is_it = |line: &str| beginnings.iter().any(|beginning| line.trim_start().starts_with(beginning));
        let line = 1 + text.lines().position(is_it).unwrap_or(0);
        Self::Invalid { file: file.to_owned(), line, problem: problem.to_owned() }
    }
}

/// Makes the parser's message one line, and adds the nearest known name if a name is unknown.
fn explain(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    if let (true, Some((unknown, known))) = (message.starts_with("unknown field"), quoted.split_first()) {
        return match nearest(unknown, known) {
            Some(name) => format!("unknown setting `{unknown}`: did you mean `{name}`?"),
            None => format!("unknown setting `{unknown}`: the known ones are {}", known.join(", ")),
        };
    }
    if let (true, [field, ..]) = (message.starts_with("missing field"), quoted.as_slice()) {
        return format!("the setting `{field}` is missing");
    }
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The known name with the least difference, if the difference is small.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let (distance, best) = known.iter().map(|known| (edit_distance(name, known), *known)).min()?;
    (distance <= 1 + name.len() / 4).then_some(best)
}

/// Levenshtein's distance, one row of the table at a time.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (to, above) in b.chars().zip(row.iter().skip(1)) {
            let replace = diagonal + usize::from(from != to);
            left = replace.min(left + 1).min(above + 1);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

pub(super) fn node_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NonZeroU16, D::Error> {
    let number = i64::deserialize(deserializer)?;
    let number = u16::try_from(number).ok().and_then(NonZeroU16::new);
    number.ok_or_else(|| D::Error::custom("a node's number is 1 to 65535, as in the group file"))
}

pub(super) fn client_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse()
        .map_err(|_| D::Error::custom(format_args!("{text:?} is not a client's name: write it as in the policy")))
}

pub(super) fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NonZeroUsize, D::Error> {
    let number = i64::deserialize(deserializer)?;
    let number = usize::try_from(number).ok().and_then(NonZeroUsize::new);
    number.ok_or_else(|| D::Error::custom("must be at least 1"))
}

/// The most threads of a kind that make sense on any machine.
const MOST_THREADS: usize = 1024;

pub(super) fn threads<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NonZeroUsize, D::Error> {
    let number = positive(deserializer)?;
    if number.get() > MOST_THREADS {
        return Err(D::Error::custom(format_args!("must be at most {MOST_THREADS}")));
    }
    Ok(number)
}

pub(super) fn threads_or_absent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NonZeroUsize>, D::Error> {
    threads(deserializer).map(Some)
}

pub(super) fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| {
        D::Error::custom(format_args!("{text:?} is not an address with a port: write for example \"127.0.0.1:7001\""))
    })
}

pub(super) fn loopback_or_absent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    loopback(deserializer, "metrics are", "127.0.0.1:7201").map(Some)
}

pub(super) fn collector<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    loopback(deserializer, "traces are", "127.0.0.1:4317")
}

/// An address of this machine's, for `what` nothing protects on its way.
fn loopback<'de, D: Deserializer<'de>>(deserializer: D, what: &str, example: &str) -> Result<SocketAddr, D::Error> {
    let address = address(deserializer)?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err(D::Error::custom(format_args!(
        "{address} is not a loopback address: {what} not protected, write for example \"{example}\""
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, distance) in [("", "abc", 3), ("kitten", "sitting", 3), ("same", "same", 0), ("ab", "ba", 2)] {
            assert_eq!(edit_distance(a, b), distance);
            assert_eq!(edit_distance(b, a), distance);
        }
    }

    #[test]
    fn a_name_far_from_all_lists_them() {
        let text = explain("unknown field `zebra`, expected one of `id`, `listen`");
        assert_eq!(text, "unknown setting `zebra`: the known ones are id, listen");
    }
}
