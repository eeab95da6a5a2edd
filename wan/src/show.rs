//! Profiles, for people.

use std::fmt::Write as _;

use theta_wan::{Line, Profile};

/// The names of all profiles, and what each is.
pub(crate) fn list() -> String {
    Profile::names().filter_map(|name| Profile::find(name).ok()).fold(String::new(), |mut text, profile| {
        let _ = writeln!(text, "{:<14} {}", profile.name(), profile.description());
        text
    })
}

/// A profile with its matrices.
pub(crate) fn profile(profile: &Profile) -> String {
    let mut text = format!("{}: {}\n\n", profile.name(), profile.description());
    let delay = |line: Line| format!("{} ± {}", milliseconds(line.delay), milliseconds(line.jitter));
    table(&mut text, profile, "one-way delay ± jitter in ms, from the row to the column", delay);
    table(&mut text, profile, "loss in %", |line| trimmed(line.loss * 100.0));
    table(&mut text, profile, "rate in Mbit/s", |line| {
        line.rate.map_or_else(|| "-".to_owned(), |rate| trimmed(std::time::Duration::from_micros(rate).as_secs_f64()))
    });
    let region = |node| profile.regions().get(profile.region_of(node)).map_or("", |region| region.title.as_str());
    let nodes: Vec<&str> = (1..=7).map(region).collect();
    let _ = writeln!(text, "the client is in {}; nodes 1, 2, ... are in {}, ...\n", region(0), nodes.join(", "));
    let _ = writeln!(text, "{}", profile.source());
    text
}

fn table(text: &mut String, profile: &Profile, title: &str, cell: impl Fn(Line) -> String) {
    let width = profile.regions().iter().map(|region| region.title.chars().count()).max().unwrap_or(0).max(14);
    let _ = write!(text, "{title}\n{:<width$}", "");
    for region in profile.regions() {
        let _ = write!(text, "  {:>width$}", region.title);
    }
    text.push('\n');
    for (from, region) in profile.regions().iter().enumerate() {
        let _ = write!(text, "{:<width$}", region.title);
        for to in 0..profile.regions().len() {
            let _ = write!(text, "  {:>width$}", profile.line(from, to).map(&cell).unwrap_or_default());
        }
        text.push('\n');
    }
    text.push('\n');
}

fn milliseconds(duration: std::time::Duration) -> String {
    trimmed(duration.as_secs_f64() * 1e3)
}

/// A number to four places, without zeros at its end.
fn trimmed(number: f64) -> String {
    let text = format!("{number:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_shown_with_its_numbers() {
        let shown = profile(&Profile::find("four-regions").unwrap());
        for part in ["\nFrankfurt          0.05 ± 0.02", "125 ± 1.2", "200", "0.01", "the client is in Frankfurt;"] {
            assert!(shown.contains(part), "{part}\n{shown}");
        }
        assert_eq!(list().lines().count(), 4);
    }
}
