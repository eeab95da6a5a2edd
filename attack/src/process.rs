//! The resources that node processes have used, from `/proc`, and how to stop a process for a while.

use std::{fs, process::Command, time::Duration};

use crate::attack::Trouble;

/// The length of a clock tick in `/proc/PID/stat`: `USER_HZ` is 100 on every Linux that Rust supports.
const MILLISECONDS_PER_TICK: u64 = 10;

/// The CPU time used so far in user and kernel mode, with a resolution of 10 ms; zero if there is no such process.
pub(crate) fn cpu_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    parse_cpu_time(&stat).unwrap_or_default()
}

/// The resident memory in bytes; zero if there is no such process.
pub(crate) fn memory(pid: u32) -> u64 {
    parse_memory(&fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default()).unwrap_or_default()
}

fn parse_cpu_time(stat: &str) -> Option<Duration> {
    // The second field is the program's name in parentheses, which may contain anything, so fields are counted from its
    // end.
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let kernel: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis(user.checked_add(kernel)?.checked_mul(MILLISECONDS_PER_TICK)?))
}

fn parse_memory(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// A process that is stopped as long as this value lives.
pub(crate) struct Stopped(u32);

impl Stopped {
    pub(crate) fn stop(pid: u32) -> Result<Self, Trouble> {
        signal("-STOP", pid)?;
        Ok(Self(pid))
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // A process that has ended needs no signal.
        let _ = signal("-CONT", self.0);
    }
}

fn signal(which: &str, pid: u32) -> Result<(), Trouble> {
    let status = Command::new("kill").args([which, &pid.to_string()]).status()?;
    if status.success() { Ok(()) } else { Err(Trouble::new("a node cannot be stopped")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_whatever_the_name() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 4 0 100 0 0";
        assert_eq!(parse_cpu_time(stat), Some(Duration::from_secs(2)));
        assert_eq!(parse_cpu_time("42 (a"), None);
        assert_eq!(parse_memory("Name:\tx\nVmRSS:\t    1024 kB\n"), Some(1 << 20));
        assert!(memory(std::process::id()) > 1 << 16);
    }
}
