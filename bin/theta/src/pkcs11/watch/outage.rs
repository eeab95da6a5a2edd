//! When the command is run: once after each time in which too few nodes were there, and again until it succeeds.

use std::time::{Duration, Instant};

/// How long after a command that failed it is run again, the first time; each further one waits twice as long.
const FIRST: Duration = Duration::from_secs(2);
/// The longest such wait.
const LONGEST: Duration = Duration::from_secs(300);

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Go on.
    Nothing,
    /// Say that too few nodes are there since now.
    Lost,
    /// Run the command.
    Run,
}

/// What was seen so far. Who has just begun to look has missed nothing yet.
#[derive(Debug, Default)]
pub(super) struct Outage {
    /// Whether too few nodes were there when it was looked last.
    is_lost: bool,
    /// Whether something has been missed that the command makes up for.
    is_due: bool,
    /// After a command that failed: not before this, and how long it was waited for.
    again: Option<(Instant, Duration)>,
}

impl Outage {
    /// Takes what is seen now.
    pub(super) fn see(&mut self, is_short: bool, now: Instant) -> Step {
        if is_short {
            self.again = None;
            self.is_due = true;
            let is_new = !std::mem::replace(&mut self.is_lost, true);
            return if is_new { Step::Lost } else { Step::Nothing };
        }
        self.is_lost = false;
        let is_time = self.again.is_none_or(|(at, _)| now >= at);
        if self.is_due && is_time { Step::Run } else { Step::Nothing }
    }

    /// The command has ended.
    pub(super) fn ended(&mut self, is_well: bool, now: Instant) {
        self.is_due = !is_well;
        let wait = self.again.map_or(FIRST, |(_, before)| before.saturating_mul(2).min(LONGEST));
        self.again = (!is_well).then_some((now + wait, wait));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_run_once_after_each_outage() {
        let (mut outage, now) = (Outage::default(), Instant::now());
        let mut see = |short: bool| {
            let step = outage.see(short, now);
            if step == Step::Run {
                outage.ended(true, now);
            }
            step
        };
        let seen = [false, false, true, true, false, false, true, false, false].map(&mut see);
        use Step::{Lost, Nothing, Run};
        assert_eq!(seen, [Nothing, Nothing, Lost, Nothing, Run, Nothing, Lost, Run, Nothing]);
    }

    #[test]
    fn a_command_that_fails_is_run_again_later_and_later_until_it_succeeds() {
        let (mut outage, start) = (Outage::default(), Instant::now());
        assert_eq!(outage.see(true, start), Step::Lost);
        let mut ran = Vec::new();
        for second in 0..1_000 {
            let now = start + Duration::from_secs(second);
            if outage.see(false, now) == Step::Run {
                ran.push(second);
                outage.ended(ran.len() == 10, now);
            }
        }
        assert_eq!(ran, [0, 2, 6, 14, 30, 62, 126, 254, 510, 810]);
        // Another outage does not wait for what is left of that.
        outage.see(true, start);
        assert_eq!(outage.see(false, start), Step::Run);
    }
}
