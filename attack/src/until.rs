//! Waits for something that a group will do eventually.

use std::time::Duration;

use tokio::time::{self, Instant};

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(100);

/// Tries until it succeeds. After the given time it returns the error of the last try.
pub(crate) async fn until<T, E, F: Future<Output = Result<T, E>>>(
    patience: Duration,
    mut attempt: impl FnMut() -> F,
) -> Result<T, E> {
    let deadline = Instant::now() + patience;
    loop {
        match attempt().await {
            Err(problem) if Instant::now() > deadline => return Err(problem),
            Err(_) => time::sleep(PAUSE).await,
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use core::future::ready;

    use super::*;

    #[tokio::test]
    async fn it_is_tried_until_it_succeeds_or_time_is_over() {
        let mut tries = 0;
        let third = until(Duration::from_secs(600), || {
            tries += 1;
            ready(if tries < 3 { Err(tries) } else { Ok(tries) })
        });
        assert_eq!(third.await, Ok(3));
        let mut tries = 0;
        let never: Result<(), u32> = until(Duration::from_millis(1), || {
            tries += 1;
            ready(Err(tries))
        })
        .await;
        assert!(never.is_err_and(|tries| tries > 1));
    }
}
