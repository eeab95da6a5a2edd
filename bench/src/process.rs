//! The resources that a process on this machine has used, from `/proc`.

use std::{fs, time::Duration};

/// The length of a clock tick in `/proc/PID/stat`: `USER_HZ` is 100 on every Linux that Rust supports.
pub(crate) const MILLISECONDS_PER_TICK: u64 = 10;

/// The CPU time used so far in user and kernel mode, with a resolution of 10 ms. `None` if there is no such process.
pub(crate) fn cpu_time(pid: u32) -> Option<Duration> {
    parse_cpu_time(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The highest resident memory so far, in bytes.
pub(crate) fn peak_memory(pid: u32) -> Option<u64> {
    parse_memory(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmHWM:")
}

/// The resident memory, in bytes.
pub(crate) fn memory(pid: u32) -> Option<u64> {
    parse_memory(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmRSS:")
}

fn parse_cpu_time(stat: &str) -> Option<Duration> {
    // The second field is the program's name in parentheses, which may contain anything, so fields are counted from its
    // end.
    let after_name = stat.get(stat.rfind(')')? + 1..)?;
    let mut fields = after_name.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let kernel: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis(user.checked_add(kernel)?.checked_mul(MILLISECONDS_PER_TICK)?))
}

fn parse_memory(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_whatever_the_name() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 4 0 100 0 0";
        assert_eq!(parse_cpu_time(stat), Some(Duration::from_secs(2)));
        assert_eq!(parse_cpu_time("42 (a"), None);
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!([parse_memory(status, "VmHWM:"), parse_memory(status, "VmRSS:")], [Some(2 << 20), Some(1 << 20)]);
    }

    #[test]
    fn this_process_has_used_something() {
        let pid = std::process::id();
        assert!(memory(pid).unwrap() > 1 << 16 && peak_memory(pid).unwrap() > 1 << 16);
        assert!(cpu_time(pid).is_some());
        assert!(cpu_time(u32::MAX).is_none());
    }
}
