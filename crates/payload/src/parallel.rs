//! Independent work on all processors, whose results are wanted in order.

use core::iter;
use core::num::NonZero;
use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};

/// More threads than this would wait for memory.
const MOST_THREADS: usize = 8;

/// Does all jobs, as many at a time as there are processors, and gives the results to `then` in the order of the jobs.
///
/// # Errors
/// The error of the first job, in order, that fails; later jobs may have been done. [`io::Error`] if no thread can be started.
pub(super) fn in_order<J, D: Send, E: From<io::Error> + Send>(
    jobs: impl Iterator<Item = J> + Send,
    work: impl Fn(J) -> Result<D, E> + Sync,
    mut then: impl FnMut(D),
) -> Result<(), E> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
    let jobs = Mutex::new(jobs.enumerate());
    let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        let (send, results) = channel();
        for _ in 0..threads {
            let (send, next, work) = (send.clone(), &next, &work);
            Builder::new().spawn_scoped(scope, move || {
                for (number, job) in iter::from_fn(next) {
                    let result = work(job);
                    let failed = result.is_err();
                    // The receiver stops at the first error in order; all jobs before it are done or under way.
                    if send.send((number, result)).is_err() || failed {
                        return;
                    }
                }
            })?;
        }
        drop(send);
        let (mut early, mut expected) = (BTreeMap::new(), 0);
        for (number, result) in results {
            early.insert(number, result);
            while let Some(result) = early.remove(&expected) {
                then(result?);
                expected += 1;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_whichever_ends_first() {
        let mut results = Vec::new();
        let slow = |job: u64| {
            thread::sleep(core::time::Duration::from_micros(job * 7919 % 300));
            Ok::<_, io::Error>(job)
        };
        in_order(0..200, slow, |result| results.push(result)).unwrap();
        assert!(results.iter().copied().eq(0..200));
        in_order(0..0, slow, |_| ()).unwrap();
    }

    #[test]
    fn the_first_error_ends_it() {
        for _ in 0..50 {
            let mut results = Vec::new();
            let failing = |job: u64| if job < 20 { Ok(job) } else { Err(io::Error::other(job.to_string())) };
            let error = in_order(0..1_000_000_000, failing, |result| results.push(result)).unwrap_err();
            assert_eq!(error.to_string(), "20");
            assert!(results.iter().copied().eq(0..20));
        }
    }
}
