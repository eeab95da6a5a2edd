//! When manifests and CRLs have to be renewed: after half of their time, so that as long again is left to whoever cannot do it at once.

use std::time::SystemTime;

use rpki::{repository::x509::Time, uri::Rsync};

use crate::check::{Dated, Point};

/// What to do about a publication point. The order is that of urgency.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Step {
    /// Its manifest or its CRL has expired, and relying parties refuse all of its objects: renew at once.
    Expired,
    /// Half of the time is over: renew.
    Renew,
    /// Nothing yet.
    Wait,
}

/// What is due at a publication point, and when.
#[derive(Clone, Debug)]
pub struct Due {
    /// The manifest, which is renewed in every case: it lists the CRL by its hash.
    pub manifest: Rsync,
    /// The CRL, if it is to be renewed as well.
    pub crl: Option<Rsync>,
    /// What to do now.
    pub step: Step,
    /// From when on there is something to do: half of the time of the manifest or the CRL, whichever is earlier.
    pub from: SystemTime,
    /// When the first of the two expires.
    pub expires: SystemTime,
}

/// What is due at each publication point, most urgent first. Who was away for several periods has one renewal to make at each point, not one
/// for each period: the next number is enough (RFC 9286 wants numbers that go up, not a number for each period).
#[must_use]
pub fn due(points: &[Point], now: SystemTime) -> Vec<Due> {
    let mut all: Vec<Due> = points.iter().map(|point| at_point(point, now)).collect();
    all.sort_by_key(|due| (due.step, due.expires));
    all
}

fn at_point(point: &Point, now: SystemTime) -> Due {
    let (manifest, crl) = (half(&point.manifest), half(&point.crl));
    let from = manifest.min(crl);
    let until = point.manifest.until.min(point.crl.until);
    let step = if until < Time::from(now) {
        Step::Expired
    } else if from <= now {
        Step::Renew
    } else {
        Step::Wait
    };
    Due {
        manifest: point.manifest.uri.clone(),
        crl: (crl <= now).then(|| point.crl.uri.clone()),
        step,
        from,
        expires: SystemTime::from(until),
    }
}

/// The middle of an object's time. An object that ends before it begins is due from its end on.
fn half(dated: &Dated) -> SystemTime {
    let (from, until) = (SystemTime::from(dated.from), SystemTime::from(dated.until));
    until.duration_since(from).ok().and_then(|time| from.checked_add(time / 2)).unwrap_or(until)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use rpki::{repository::x509::Time, uri::Rsync};

    use super::{Step, due};
    use crate::check::{Dated, Point};

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn dated(file: &str, from: u64, until: u64) -> Dated {
        let uri = Rsync::from_string(format!("rsync://host/module/{file}")).unwrap();
        let (from, until) = (Time::from(at(from)), Time::from(at(until)));
        Dated { uri, number: 1u64.into(), from, begins: from, until }
    }

    fn point(name: &str, manifest: (u64, u64), crl: (u64, u64)) -> Point {
        Point {
            manifest: dated(&format!("{name}.mft"), manifest.0, manifest.1),
            crl: dated(&format!("{name}.crl"), crl.0, crl.1),
            listed: Vec::new(),
        }
    }

    #[test]
    fn half_of_the_time_is_when_to_renew() {
        let points = [point("a", (1000, 2000), (1000, 3000))];
        for (now, step) in [(1499, Step::Wait), (1500, Step::Renew), (2000, Step::Renew), (2001, Step::Expired)] {
            let [only] = <[_; 1]>::try_from(due(&points, at(now))).unwrap();
            assert_eq!((only.step, only.from, only.expires), (step, at(1500), at(2000)), "at {now}");
            assert_eq!(only.crl.is_some(), now >= 2000, "at {now}");
        }
    }

    #[test]
    fn a_crl_that_is_due_takes_its_manifest_along() {
        let points = [point("a", (1000, 9000), (1000, 2000))];
        let [only] = <[_; 1]>::try_from(due(&points, at(1500))).unwrap();
        assert_eq!(only.step, Step::Renew);
        assert!(only.crl.is_some());
    }

    #[test]
    fn who_was_away_renews_each_point_once_and_the_expired_ones_first() {
        let points = [
            point("fresh", (90_000, 99_000), (90_000, 99_000)),
            point("due", (80_000, 91_000), (80_000, 91_000)),
            point("later", (1000, 2000), (1000, 2000)),
            point("first", (1000, 1500), (1000, 2000)),
        ];
        let order: Vec<_> = due(&points, at(90_500)).into_iter().map(|due| (due.manifest, due.step)).collect();
        let expected =
            [("first", Step::Expired), ("later", Step::Expired), ("due", Step::Renew), ("fresh", Step::Wait)];
        let expected = expected.map(|(name, step)| (dated(&format!("{name}.mft"), 0, 1).uri, step));
        assert_eq!(order, expected);
    }

    #[test]
    fn what_ends_before_it_begins_is_due_from_its_end() {
        let points = [point("a", (2000, 1000), (1000, 9000))];
        let [only] = <[_; 1]>::try_from(due(&points, at(1000))).unwrap();
        assert_eq!((only.step, only.from), (Step::Renew, at(1000)));
    }
}
