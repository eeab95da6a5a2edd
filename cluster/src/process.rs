//! The CPU that a process on this machine has used.

use std::time::Duration;

/// The CPU time used so far in user and kernel mode, of threads that have ended as well. `None` if there is no such process.
///
/// The process's own clock counts nanoseconds; `/proc/PID/stat` counts whole ticks, in which the work of a few requests is nothing.
#[cfg(target_os = "linux")]
pub fn cpu_time(pid: u32) -> Option<Duration> {
    use nix::{
        time::{clock_getcpuclockid, clock_gettime},
        unistd::Pid,
    };

    let pid = Pid::from_raw(i32::try_from(pid).ok()?);
    Some(clock_gettime(clock_getcpuclockid(pid).ok()?).ok()?.into())
}

/// Other systems do not say: `None`.
#[cfg(not(target_os = "linux"))]
pub const fn cpu_time(_pid: u32) -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_something() {
        let pid = std::process::id();
        let before = cpu_time(pid).unwrap();
        let worked = (0..100_000_u64).fold(0, |sum, i| std::hint::black_box(sum ^ i));
        assert!(worked < 1 << 17 && cpu_time(pid).unwrap() > before);
        assert!(cpu_time(u32::MAX).is_none());
    }
}
