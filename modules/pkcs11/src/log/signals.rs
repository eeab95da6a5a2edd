//! Signals are the host's: no thread of the module takes one, and none of them ends the host.
//!
//! A write to a connection or pipe that the other end has closed raises `SIGPIPE` in the thread that writes. Programs in Rust ignore
//! it; a host may not, and would die of a node that hangs up. Threads inherit the signals that are blocked where they start.

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// The signals that were blocked before, which come back when this is dropped.
struct Before(Option<SigSet>);

impl Drop for Before {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // The set is the one that the system gave.
            let _ = before.thread_set_mask();
        }
    }
}

/// Does what starts a thread. Those that it starts take no signals, but for those of their own faults.
pub(crate) fn shielded<T>(work: impl FnOnce() -> T) -> T {
    let mut all = SigSet::all();
    for fault in [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGILL, Signal::SIGFPE, Signal::SIGTRAP, Signal::SIGABRT] {
        all.remove(fault);
    }
    let _before = Before(all.thread_swap_mask(SigmaskHow::SIG_BLOCK).ok());
    work()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn what_is_started_inside_takes_no_signals_and_the_caller_does_again() {
        let blocked = |signal| SigSet::thread_get_mask().unwrap().contains(signal);
        let before = blocked(Signal::SIGPIPE);
        let inside = shielded(|| thread::spawn(move || (blocked(Signal::SIGPIPE), blocked(Signal::SIGSEGV))));
        assert_eq!(inside.join().unwrap(), (true, false));
        assert_eq!(blocked(Signal::SIGPIPE), before);
    }
}
