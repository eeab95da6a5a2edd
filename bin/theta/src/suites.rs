//! `theta suites`: lists the kinds of keys.

use serde::Serialize;
use theta_schemes::Suite;

use crate::{
    exit::Failure,
    output::{Output, Table},
};

#[derive(Serialize)]
struct SuiteView {
    suite: &'static str,
    scheme: &'static str,
    group: &'static str,
    purpose: &'static str,
    description: &'static str,
}

/// `theta suites`.
pub(crate) fn list(output: Output) -> Result<(), Failure> {
    let views = Suite::ALL.map(|suite| SuiteView {
        suite: suite.name(),
        scheme: suite.scheme(),
        group: suite.group(),
        purpose: suite.purpose().name(),
        description: suite.description(),
    });
    output.result(&views.as_slice(), |out| {
        let mut table = Table::new(&["suite", "scheme", "group", "purpose", "what it is"], &[]);
        for view in &views {
            table.row([view.suite, view.scheme, view.group, view.purpose, view.description].map(ToOwned::to_owned));
        }
        table.write(out)
    })
}

/// A suite by its name; the error names the nearest known one.
pub(crate) fn parse(name: &str) -> Result<Suite, String> {
    name.parse().map_err(|_| match nearest(name) {
        Some(near) => format!("unknown suite {name:?}: did you mean {near}? theta suites lists all"),
        None => format!("unknown suite {name:?}: theta suites lists those that there are, such as frost-ed25519"),
    })
}

/// The suite whose name is nearest to this one, if one is near.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    let likeness = |suite: Suite| strsim::jaro_winkler(suite.name(), &name.to_lowercase());
    let best = Suite::ALL.into_iter().max_by(|a, b| likeness(*a).total_cmp(&likeness(*b)))?;
    (likeness(best) > 0.85).then_some(best.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_understood() {
        for (typed, meant) in [
            ("sg02-ristreto255", "sg02-ristretto255"),
            ("FROST-ed25519", "frost-ed25519"),
            ("sh00-pkcs1-sha265", "sh00-pkcs1-sha256"),
            ("bls04-bls12381-minpk", "bls04-bls12381-min-pk"),
        ] {
            assert!(parse(typed).unwrap_err().contains(&format!("did you mean {meant}?")), "{typed}");
        }
        assert!(!parse("rot13").unwrap_err().contains("did you mean"));
        assert_eq!(parse("frost-ed448"), Ok(Suite::FrostEd448));
    }
}
