//! Parts of a program at once.

use core::{
    future::{Future, poll_fn},
    task::Poll,
};

use super::Stop;

/// Runs two parts at once, so that what they send shares rounds and messages. Ends with the first that stops.
///
/// They are polled in this order at every party, which therefore write and read messages in the same order.
///
/// # Errors
/// The first [`Stop`] of either.
pub async fn both<A: Send, B: Send>(
    first: impl Future<Output = Result<A, Stop>> + Send,
    second: impl Future<Output = Result<B, Stop>> + Send,
) -> Result<(A, B), Stop> {
    let (mut first, mut second) = (Box::pin(first), Box::pin(second));
    let (mut a, mut b) = (None, None);
    poll_fn(move |context| {
        if a.is_none()
            && let Poll::Ready(result) = first.as_mut().poll(context)
        {
            match result {
                Ok(value) => a = Some(value),
                Err(stop) => return Poll::Ready(Err(stop)),
            }
        }
        if b.is_none()
            && let Poll::Ready(result) = second.as_mut().poll(context)
        {
            match result {
                Ok(value) => b = Some(value),
                Err(stop) => return Poll::Ready(Err(stop)),
            }
        }
        match (a.take(), b.take()) {
            (Some(a), Some(b)) => Poll::Ready(Ok((a, b))),
            (x, y) => {
                (a, b) = (x, y);
                Poll::Pending
            }
        }
    })
    .await
}

/// Runs any number of parts at once, so that what they send shares rounds and messages. Ends with the first that stops.
///
/// They are polled in this order at every party, as [`both`] polls two.
///
/// # Errors
/// The first [`Stop`] of any.
pub async fn all<T: Send>(
    parts: impl IntoIterator<Item = impl Future<Output = Result<T, Stop>> + Send>,
) -> Result<Vec<T>, Stop> {
    let mut running: Vec<_> = parts.into_iter().map(|part| Some(Box::pin(part))).collect();
    let mut ended: Vec<Option<T>> = running.iter().map(|_| None).collect();
    poll_fn(move |context| {
        for (part, value) in running.iter_mut().zip(&mut ended) {
            let Some(future) = part else { continue };
            if let Poll::Ready(result) = future.as_mut().poll(context) {
                match result {
                    Ok(result) => *value = Some(result),
                    Err(stop) => return Poll::Ready(Err(stop)),
                }
                *part = None;
            }
        }
        if running.iter().any(Option::is_some) {
            Poll::Pending
        } else {
            Poll::Ready(Ok(ended.drain(..).flatten().collect()))
        }
    })
    .await
}
