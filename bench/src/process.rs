//! The resources that a process on this machine has used.

use std::fs;

/// The length of a clock tick in `/proc/stat`: `USER_HZ` is 100 on every Linux that Rust supports.
pub(crate) const MILLISECONDS_PER_TICK: u64 = 10;

/// The highest resident memory so far, in bytes.
pub(crate) fn peak_memory(pid: u32) -> Option<u64> {
    parse_memory(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmHWM:")
}

/// The resident memory, in bytes.
pub(crate) fn memory(pid: u32) -> Option<u64> {
    parse_memory(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmRSS:")
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
    fn memory_is_read_in_kibibytes() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!([parse_memory(status, "VmHWM:"), parse_memory(status, "VmRSS:")], [Some(2 << 20), Some(1 << 20)]);
    }

    #[test]
    fn this_process_has_some() {
        let pid = std::process::id();
        assert!(memory(pid).unwrap() > 1 << 16 && peak_memory(pid).unwrap() > 1 << 16);
    }
}
