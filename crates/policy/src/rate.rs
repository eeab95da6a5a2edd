//! Rates: token buckets in integers. The caller gives the time.
//!
//! A bucket of `count` requests a period counts in parts: a request costs as many parts as the period has milliseconds, and
//! each millisecond brings `count` parts. So nothing is ever rounded.

use core::{fmt, str::FromStr};
use std::collections::HashMap;

use theta_statements::{Name, UnixTime};

/// The largest count and burst.
pub const MOST_RATE: u64 = 1_000_000;
/// How many buckets a node keeps at most. Full ones can be forgotten, because a new bucket is full, too.
pub const MOST_BUCKETS: usize = 65_536;

/// How far apart the clock readings of concurrent calls may be, in milliseconds.
const JITTER: u64 = 60_000;

/// How many requests a period allows, and how many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    count: u64,
    unit: Unit,
    burst: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Second,
    Minute,
    Hour,
    Day,
}

impl Unit {
    const ALL: [Self; 4] = [Self::Second, Self::Minute, Self::Hour, Self::Day];

    const fn name_and_millis(self) -> (&'static str, u64) {
        match self {
            Self::Second => ("s", 1_000),
            Self::Minute => ("min", 60_000),
            Self::Hour => ("h", 3_600_000),
            Self::Day => ("day", 86_400_000),
        }
    }
}

/// The text is not a rate; at most 80 characters of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a rate; write a number of requests from 1 to {MOST_RATE} and /s, /min, /h or /day, as in \"100/min\""
)]
pub struct RateError(pub String);

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let parse = || {
            let (count, unit) = text.split_once('/')?;
            let digits = count.bytes().all(|byte| byte.is_ascii_digit());
            let count = count.parse().ok().filter(|count| digits && (1..=MOST_RATE).contains(count))?;
            let unit = Unit::ALL.into_iter().find(|known| known.name_and_millis().0 == unit)?;
            Some(Self { count, unit, burst: count })
        };
        parse().ok_or_else(|| RateError(text.chars().take(80).collect()))
    }
}

impl Rate {
    /// `count` requests a second, and as many at once.
    pub(crate) const fn a_second(count: u64) -> Self {
        Self { count, unit: Unit::Second, burst: count }
    }

    /// The rate with another burst, which is the number of requests that may come at once after a pause: 1 to [`MOST_RATE`].
    /// By default it is the count.
    #[must_use]
    pub fn with_burst(self, burst: u64) -> Option<Self> {
        (1..=MOST_RATE).contains(&burst).then_some(Self { burst, ..self })
    }

    /// The cost of a request, in parts.
    const fn cost(&self) -> u64 {
        self.unit.name_and_millis().1
    }

    /// The parts in a full bucket: at most 10^6 * 86,400,000, so nothing overflows.
    const fn capacity(&self) -> u64 {
        self.burst * self.cost()
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, burst {}", self.count, self.unit.name_and_millis().0, self.burst)
    }
}

/// A bucket's answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum RateAnswer {
    /// The request is within the rate.
    Taken,
    /// The request is too early; it is within the rate after so many milliseconds.
    Wait(u64),
    /// There are too many buckets for now.
    NoRoom,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    rate: Rate,
    level: u64,
    at: UnixTime,
}

impl Bucket {
    /// Refills the bucket up to `now`, after converting the level if the rate has changed. A clock that goes back brings nothing;
    /// after a step back by more than [`JITTER`] the bucket goes on from the new time.
    fn refill(&mut self, rate: Rate, now: UnixTime) {
        if self.rate != rate {
            self.level = (self.level / self.rate.cost()).saturating_mul(rate.cost());
            self.rate = rate;
        }
        let gained = now.since(self.at).saturating_mul(rate.count);
        self.level = self.level.saturating_add(gained).min(rate.capacity());
        if now > self.at || self.at.since(now) > JITTER {
            self.at = now;
        }
    }

    fn take(&mut self, rate: Rate, now: UnixTime) -> RateAnswer {
        self.refill(rate, now);
        match self.level.checked_sub(rate.cost()) {
            Some(rest) => {
                self.level = rest;
                RateAnswer::Taken
            }
            None => RateAnswer::Wait(rate.cost().saturating_sub(self.level).div_ceil(rate.count)),
        }
    }

    const fn is_full_at(&self, now: UnixTime) -> bool {
        let gained = now.since(self.at).saturating_mul(self.rate.count);
        self.level.saturating_add(gained) >= self.rate.capacity()
    }
}

/// The buckets of a node: one for each rule and client.
#[derive(Debug)]
pub struct RateLimiter {
    buckets: HashMap<(Name, Name), Bucket>,
    most: usize,
}

impl Default for RateLimiter {
    fn default() -> Self {
        Self::new(MOST_BUCKETS)
    }
}

impl RateLimiter {
    /// A limiter of at most `most` buckets.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { buckets: HashMap::new(), most }
    }

    /// Counts one request of the client against the rule's rate.
    pub fn take(&mut self, rule: &Name, client: &Name, rate: Rate, now: UnixTime) -> RateAnswer {
        let id = (rule.clone(), client.clone());
        if !self.buckets.contains_key(&id) {
            if self.buckets.len() >= self.most {
                self.buckets.retain(|_, bucket| !bucket.is_full_at(now));
            }
            if self.buckets.len() >= self.most {
                return RateAnswer::NoRoom;
            }
        }
        let full = Bucket { rate, level: rate.capacity(), at: now };
        let bucket = self.buckets.entry(id).or_insert(full);
        bucket.take(rate, now)
    }

    /// What [`take`](Self::take) would answer now. Takes nothing.
    pub fn look(&self, rule: &Name, client: &Name, rate: Rate, now: UnixTime) -> RateAnswer {
        let bucket = self.buckets.get(&(rule.clone(), client.clone())).copied();
        if bucket.is_none()
            && self.buckets.len() >= self.most
            && !self.buckets.values().any(|bucket| bucket.is_full_at(now))
        {
            return RateAnswer::NoRoom;
        }
        bucket.unwrap_or(Bucket { rate, level: rate.capacity(), at: now }).take(rate, now)
    }

    /// Forgets the buckets of rules for which `keep` is false.
    pub fn keep_rules(&mut self, keep: impl Fn(&Name) -> bool) {
        self.buckets.retain(|(rule, _), _| keep(rule));
    }

    /// How many buckets there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }
}
