//! Profiles: regions, what lies between them, and which nodes are where.

use std::{fs, io, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use crate::link::Line;

/// The most nodes: each has one of the 254 addresses of a network, and the client has the last.
pub const MAX_NODES: u16 = 250;
const MAX_REGIONS: usize = 32;
const MAX_FILE_BYTES: u64 = 64 * 1024;
const MAX_DELAY_MS: f64 = 10_000.0;
const MAX_RATE_MBIT: f64 = 100_000.0;
const MIN_RATE_MBIT: f64 = 0.01;
/// How long a packet may wait for a line if the profile does not say.
const USUAL_QUEUE_MS: f64 = 50.0;

/// The profiles that come with the program.
const BUILT_IN: [(&str, &str); 4] = [
    ("lan", include_str!("../profiles/lan.toml")),
    ("regional", include_str!("../profiles/regional.toml")),
    ("four-regions", include_str!("../profiles/four-regions.toml")),
    ("continents", include_str!("../profiles/continents.toml")),
];

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// None has this name.
    #[error("no profile {name:?}: write {}, or a path with a / or the ending .toml", known())]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The file cannot be read.
    #[error("cannot read the profile {path}: {error}")]
    File {
        /// Where it should be.
        path: String,
        /// What the system says.
        error: io::Error,
    },
    /// Nobody writes such a long one.
    #[error(
        "the profile {path} has more than {MAX_FILE_BYTES} bytes: give the path of a profile, such as those in wan/profiles"
    )]
    TooLong {
        /// The file.
        path: String,
    },
    /// It is not what a profile looks like.
    #[error("the profile {name}, {problem}: wan/README.md lists the fields")]
    Syntax {
        /// The profile.
        name: String,
        /// The parser's words, in one line.
        problem: String,
    },
    /// No region, too many, or two of one name.
    #[error("the profile {name} has {found}: give 1 to {MAX_REGIONS} [[regions]] with different names")]
    Regions {
        /// The profile.
        name: String,
        /// What it has.
        found: String,
    },
    /// A region is named that is not listed.
    #[error("the profile {name}, {field}: there is no region {region:?} in its [[regions]]")]
    NoSuchRegion {
        /// The profile.
        name: String,
        /// Where the region is named.
        field: &'static str,
        /// The name.
        region: String,
    },
    /// A matrix has not one row and one column for each region.
    #[error("the profile {name}, {field}: give one number, or {regions} rows of {regions} numbers each")]
    Shape {
        /// The profile.
        name: String,
        /// The matrix.
        field: &'static str,
        /// How many regions there are.
        regions: usize,
    },
    /// A number that no network has.
    #[error("the profile {name}, {field} from {from} to {to} is {value}: give {bounds}")]
    OutOfBounds {
        /// The profile.
        name: String,
        /// The matrix.
        field: &'static str,
        /// The sender's region.
        from: String,
        /// The receiver's region.
        to: String,
        /// The number.
        value: f64,
        /// What it may be.
        bounds: String,
    },
}

fn known() -> String {
    BUILT_IN.map(|(name, _)| name).join(", ")
}

/// A place in the world.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// How the profile names it.
    pub name: String,
    /// How people name it.
    pub title: String,
}

/// One number for all pairs of regions, or a row for each sender's region.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Matrix {
    Same(f64),
    Each(Vec<Vec<f64>>),
}

impl Matrix {
    fn get(&self, from: usize, to: usize) -> f64 {
        match self {
            Self::Same(value) => *value,
            Self::Each(rows) => rows.get(from).and_then(|row| row.get(to)).copied().unwrap_or(f64::NAN),
        }
    }

    fn is_square(&self, size: usize) -> bool {
        match self {
            Self::Same(_) => true,
            Self::Each(rows) => rows.len() == size && rows.iter().all(|row| row.len() == size),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    description: String,
    source: String,
    client: String,
    spread: Option<Vec<String>>,
    delay_ms: Matrix,
    jitter_ms: Option<Matrix>,
    loss_percent: Option<Matrix>,
    rate_mbit: Option<Matrix>,
    queue_ms: Option<Matrix>,
    regions: Vec<Region>,
}

/// What lies between the nodes of a group.
#[derive(Clone, Debug, Serialize)]
pub struct Profile {
    name: String,
    description: String,
    source: String,
    regions: Vec<Region>,
    /// The client's region.
    client: usize,
    /// The regions of the nodes 1, 2, ..., again from the beginning when it ends.
    spread: Vec<usize>,
    /// A row for each sender's region.
    lines: Vec<Vec<Line>>,
}

impl Profile {
    /// The names of the profiles that come with the program.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.into_iter().map(|(name, _)| name)
    }

    /// A profile by its name or, if that has a `/` or ends with `.toml`, from this file.
    pub fn find(name: &str) -> Result<Self, ProfileError> {
        if name.contains('/') || name.ends_with(".toml") {
            return Self::read(name);
        }
        let found = BUILT_IN.into_iter().find(|(known, _)| *known == name);
        let (name, text) = found.ok_or_else(|| ProfileError::Unknown { name: name.to_owned() })?;
        Self::parse(name, text)
    }

    fn read(path: &str) -> Result<Self, ProfileError> {
        let failed = |error| ProfileError::File { path: path.to_owned(), error };
        if fs::metadata(path).map_err(failed)?.len() > MAX_FILE_BYTES {
            return Err(ProfileError::TooLong { path: path.to_owned() });
        }
        let text = fs::read_to_string(path).map_err(failed)?;
        let name = PathBuf::from(path).file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        Self::parse(&name, &text)
    }

    /// A profile from the text of its file.
    pub fn parse(name: &str, text: &str) -> Result<Self, ProfileError> {
        let file: File = toml::from_str(text).map_err(|error: toml::de::Error| {
            let line =
                error.span().and_then(|span| text.get(..span.start)).map_or(1, |before| before.lines().count().max(1));
            let problem = format!("line {line}: {}", error.message().replace('\n', " "));
            ProfileError::Syntax { name: name.to_owned(), problem }
        })?;
        let size = file.regions.len();
        let twice = file
            .regions
            .iter()
            .enumerate()
            .find(|(at, region)| file.regions.iter().take(*at).any(|before| before.name == region.name));
        if let Some((_, region)) = twice {
            return Err(ProfileError::Regions { name: name.to_owned(), found: format!("{:?} twice", region.name) });
        }
        if !(1..=MAX_REGIONS).contains(&size) {
            return Err(ProfileError::Regions { name: name.to_owned(), found: format!("{size} regions") });
        }
        let place = |field, region: &String| {
            let place = file.regions.iter().position(|listed| listed.name == *region);
            place.ok_or_else(|| ProfileError::NoSuchRegion { name: name.to_owned(), field, region: region.clone() })
        };
        let client = place("client", &file.client)?;
        let spread = match &file.spread {
            Some(names) => names.iter().map(|region| place("spread", region)).collect::<Result<Vec<_>, _>>()?,
            None => (0..size).collect(),
        };
        if spread.is_empty() {
            let found = "an empty spread".to_owned();
            return Err(ProfileError::Regions { name: name.to_owned(), found });
        }
        let lines = file.lines(name)?;
        let (description, source) = (file.description, file.source);
        Ok(Self { name: name.to_owned(), description, source, regions: file.regions, client, spread, lines })
    }

    /// One region whose nodes have this line between any two of them, in each direction.
    pub fn uniform(name: &str, line: Line) -> Self {
        Self {
            name: name.to_owned(),
            description: String::new(),
            source: String::new(),
            regions: vec![Region { name: name.to_owned(), title: name.to_owned() }],
            client: 0,
            spread: vec![0],
            lines: vec![vec![line]],
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is, in one line.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Where its numbers come from.
    pub fn source(&self) -> &str {
        self.source.trim()
    }

    /// Its regions.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// The place in [`Profile::regions`] of a node, or of the client, which has the number 0.
    pub fn region_of(&self, node: u16) -> usize {
        let Some(place) = node.checked_sub(1) else { return self.client };
        self.spread.iter().cycle().nth(usize::from(place) % self.spread.len().max(1)).copied().unwrap_or(0)
    }

    /// The line from one region to another, by their places.
    pub fn line(&self, from: usize, to: usize) -> Option<Line> {
        self.lines.get(from)?.get(to).copied()
    }

    /// The line from a node to another; 0 is the client.
    pub fn between(&self, from: u16, to: u16) -> Option<Line> {
        self.line(self.region_of(from), self.region_of(to))
    }
}

impl File {
    fn lines(&self, name: &str) -> Result<Vec<Vec<Line>>, ProfileError> {
        let regions = self.regions.len();
        let matrices = [
            ("delay_ms", Some(&self.delay_ms)),
            ("jitter_ms", self.jitter_ms.as_ref()),
            ("loss_percent", self.loss_percent.as_ref()),
            ("rate_mbit", self.rate_mbit.as_ref()),
            ("queue_ms", self.queue_ms.as_ref()),
        ];
        for (field, matrix) in matrices {
            if matrix.is_some_and(|matrix| !matrix.is_square(regions)) {
                return Err(ProfileError::Shape { name: name.to_owned(), field, regions });
            }
        }
        (0..regions).map(|from| (0..regions).map(|to| self.line(name, from, to)).collect()).collect()
    }

    fn line(&self, name: &str, from: usize, to: usize) -> Result<Line, ProfileError> {
        let number = |field, matrix: Option<&Matrix>, usual: f64, least: f64, most: f64| {
            let value = matrix.map_or(usual, |matrix| matrix.get(from, to));
            if (least..=most).contains(&value) {
                return Ok(value);
            }
            let title = |place: usize| self.regions.get(place).map_or_else(String::new, |region| region.name.clone());
            Err(ProfileError::OutOfBounds {
                name: name.to_owned(),
                field,
                from: title(from),
                to: title(to),
                value,
                bounds: format!("a number from {least} to {most}"),
            })
        };
        let delay = number("delay_ms", Some(&self.delay_ms), 0.0, 0.0, MAX_DELAY_MS)?;
        let jitter = number("jitter_ms", self.jitter_ms.as_ref(), 0.0, 0.0, delay)?;
        let loss = number("loss_percent", self.loss_percent.as_ref(), 0.0, 0.0, 99.0)?;
        let queue = number("queue_ms", self.queue_ms.as_ref(), USUAL_QUEUE_MS, 0.0, MAX_DELAY_MS)?;
        let rate = match &self.rate_mbit {
            Some(rates) => Some(number("rate_mbit", Some(rates), 0.0, MIN_RATE_MBIT, MAX_RATE_MBIT)?),
            None => None,
        };
        Ok(Line {
            delay: milliseconds(delay),
            jitter: milliseconds(jitter),
            loss: loss / 100.0,
            // Bits a second are microseconds of this: exact for every rate that people write.
            rate: rate.map(|megabits| u64::try_from(Duration::from_secs_f64(megabits).as_micros()).unwrap_or(u64::MAX)),
            queue: milliseconds(queue),
        })
    }
}

/// Nanoseconds are exact where people write up to six places.
fn milliseconds(number: f64) -> Duration {
    Duration::from_secs_f64(number / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"
        description = "d"
        source = "s"
        client = "b"
        spread = ["a", "a", "b"]
        delay_ms = [[0.1, 40], [60, 0.1]]
        jitter_ms = 0.1
        loss_percent = [[0, 1], [2, 0]]
        rate_mbit = 12.5
        regions = [{ name = "a", title = "A" }, { name = "b", title = "B" }]
    "#;

    #[test]
    fn a_profile_says_what_lies_between_two_nodes() {
        let profile = Profile::parse("two", TWO).unwrap();
        let regions: Vec<usize> = (0..=6).map(|node| profile.region_of(node)).collect();
        assert_eq!(regions, [1, 0, 0, 1, 0, 0, 1], "the client, then the spread, twice");
        let there = profile.between(1, 3).unwrap();
        assert_eq!((there.delay, there.loss, there.rate), (Duration::from_millis(40), 0.01, Some(12_500_000)));
        let back = profile.between(3, 1).unwrap();
        assert_eq!((back.delay, back.loss, back.jitter), (Duration::from_millis(60), 0.02, Duration::from_micros(100)));
        assert_eq!(profile.between(1, 2).unwrap().delay, Duration::from_micros(100), "two nodes of one region");
        assert_eq!(
            profile.between(0, 2).unwrap().delay,
            Duration::from_millis(60),
            "the client is in the second region"
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_what_to_do() {
        let wrong = [
            (
                r#"client = "b""#,
                r#"client = "c""#,
                "the profile two, client: there is no region \"c\" in its [[regions]]",
            ),
            (r#""a", "a", "b""#, r#""a", "z""#, "the profile two, spread: there is no region \"z\" in its [[regions]]"),
            (
                r#""a", "a", "b""#,
                "",
                "the profile two has an empty spread: give 1 to 32 [[regions]] with different names",
            ),
            (
                r#"name = "b""#,
                r#"name = "a""#,
                "the profile two has \"a\" twice: give 1 to 32 [[regions]] with different names",
            ),
            ("[60, 0.1]]", "[60]]", "the profile two, delay_ms: give one number, or 2 rows of 2 numbers each"),
            ("[60, 0.1]]", "[-1, 0.1]]", "the profile two, delay_ms from b to a is -1: give a number from 0 to 10000"),
            (
                "[60, 0.1]]",
                "[nan, 0.1]]",
                "the profile two, delay_ms from b to a is NaN: give a number from 0 to 10000",
            ),
            (
                "jitter_ms = 0.1",
                "jitter_ms = 0.2",
                "the profile two, jitter_ms from a to a is 0.2: give a number from 0 to 0.1",
            ),
            ("[2, 0]]", "[100, 0]]", "the profile two, loss_percent from b to a is 100: give a number from 0 to 99"),
            ("12.5", "0", "the profile two, rate_mbit from a to a is 0: give a number from 0.01 to 100000"),
            ("rate_mbit", "rate", "the profile two, line 9: unknown field `rate`"),
        ];
        for (right, instead, said) in wrong {
            let text = TWO.replace(right, instead);
            assert_ne!(text, TWO, "{right}");
            let error = Profile::parse("two", &text).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}\n{said}");
        }
        let error = Profile::find("moon").unwrap_err().to_string();
        assert_eq!(
            error,
            "no profile \"moon\": write lan, regional, four-regions, continents, or a path with a / or the ending .toml"
        );
        assert!(
            Profile::find("no/such.toml")
                .unwrap_err()
                .to_string()
                .starts_with("cannot read the profile no/such.toml: ")
        );
    }

    #[test]
    fn the_built_in_profiles_are_symmetric_and_say_their_source() {
        for name in Profile::names() {
            let profile = Profile::find(name).unwrap();
            assert!(profile.source().len() > 100 && !profile.description().is_empty(), "{name}");
            let places = 0..profile.regions().len();
            for (from, to) in places.clone().flat_map(|from| places.clone().map(move |to| (from, to))) {
                assert_eq!(profile.line(from, to), profile.line(to, from), "{name}: {from}, {to}");
            }
        }
    }

    #[test]
    fn a_file_is_read_up_to_its_bound() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("mine.toml");
        fs::write(&path, TWO).unwrap();
        assert_eq!(Profile::find(&path.to_string_lossy()).unwrap().name(), "mine");
        fs::write(&path, [TWO, "#", &"x".repeat(64 * 1024)].concat()).unwrap();
        assert!(matches!(Profile::find(&path.to_string_lossy()), Err(ProfileError::TooLong { .. })));
    }
}
