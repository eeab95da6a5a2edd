//! A pipeline of two stages, each on a thread of its own, while the caller's thread reads and writes.
//!
//! Sealing, hashing and the file system take about as long as each other; one after the other they would take three times
//! as long.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Builder};

/// Passes batches through both stages in order. `fill` says whether its batch is the last; `drain` gets the batches back.
/// No more batches are under way than `buffers` holds.
///
/// # Errors
/// The first error of any part, after which all stop; [`io::Error`] if no thread can be started.
pub(super) fn run<B: Send, E: From<io::Error> + Send>(
    buffers: Vec<B>,
    mut fill: impl FnMut(&mut B) -> Result<bool, E>,
    first: impl FnMut(&mut B) -> Result<(), E> + Send,
    second: impl FnMut(&mut B) -> Result<(), E> + Send,
    mut drain: impl FnMut(&mut B) -> Result<(), E>,
) -> Result<(), E> {
    thread::scope(|scope| {
        let (feed, fed) = channel();
        let (pass, passed) = channel();
        let (finish, finished) = channel();
        Builder::new().spawn_scoped(scope, move || stage(&fed, &pass, first))?;
        Builder::new().spawn_scoped(scope, move || stage(&passed, &finish, second))?;
        let (mut free, mut more, mut under_way) = (buffers, true, 0_usize);
        while more || under_way > 0 {
            if let Some(mut batch) = free.pop_if(|_| more) {
                more = !fill(&mut batch)?;
                // A stage that has failed takes no more; its error waits below.
                let _ = feed.send(Ok(batch));
                under_way += 1;
            } else {
                let gone = || E::from(io::Error::other("a stage of the payload's pipeline ended early"));
                let mut batch = finished.recv().map_err(|_| gone())??;
                drain(&mut batch)?;
                under_way -= 1;
                free.push(batch);
            }
        }
        Ok(())
    })
}

/// Works on what comes in, and ends after an error.
fn stage<B, E>(
    input: &Receiver<Result<B, E>>,
    output: &Sender<Result<B, E>>,
    mut work: impl FnMut(&mut B) -> Result<(), E>,
) {
    for batch in input {
        let done = batch.and_then(|mut batch| work(&mut batch).map(|()| batch));
        let failed = done.is_err();
        if output.send(done).is_err() || failed {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum_of_squares(failing: Option<u64>) -> Result<u64, io::Error> {
        let (mut next, mut sum) = (0, 0);
        let fail_at = |stage: u64, value: u64| match failing {
            Some(at) if at == value + stage => Err(io::Error::other(format!("stage {stage}"))),
            _ => Ok(()),
        };
        run(
            vec![0_u64; 3],
            |batch| {
                *batch = next;
                next += 1;
                Ok(next == 100)
            },
            |batch| {
                fail_at(1000, *batch)?;
                *batch *= *batch;
                Ok(())
            },
            |batch| fail_at(2000, *batch),
            |batch| {
                sum += *batch;
                Ok(())
            },
        )?;
        Ok(sum)
    }

    #[test]
    fn everything_comes_out() {
        assert_eq!(sum_of_squares(None).unwrap(), 328_350);
    }

    #[test]
    fn an_error_of_any_stage_ends_it() {
        assert_eq!(sum_of_squares(Some(1050)).unwrap_err().to_string(), "stage 1000");
        assert_eq!(sum_of_squares(Some(2049)).unwrap_err().to_string(), "stage 2000");
    }
}
