//! What one issuer can use up at most of what all need: numbers, keys of the pool, and lines of the memory. None of it can be used up so that others
//! find nothing left.

use super::{Facts, Refusal, words};
use crate::{
    memory::{Last, Number, Purpose},
    registry::Authority,
};

/// So many keys are for one content, or for the manifests of one authority; they may sign it again.
pub(super) const MOST_KEYS: usize = 8;
/// So many certificates of a file stand at once.
const MOST_CERTIFICATES: usize = 64;
/// So many certificates of a manifest stand at once. Each manifest has one, and few end before the next list.
const MOST_OF_MANIFEST: usize = 1_000;
/// The highest number rises by two to the power of this in each second.
const NUMBERS_A_SECOND: u32 = 20;

/// The highest number that a manifest or a list may have now. In each second there are a million new ones, so nobody uses them up.
fn highest(facts: &Facts<'_>) -> Number {
    let seconds = facts.now.saturating_add(facts.registry.terms.clocks);
    let highest = u128::try_from(seconds).unwrap_or_default() << NUMBERS_A_SECOND;
    let mut number: Number = [0; 20];
    if let Some(low) = number.last_chunk_mut::<16>() {
        *low = highest.to_be_bytes();
    }
    number
}

/// Whether a number is above the last one, and not above what it may be now.
pub(super) fn number(
    what: &'static str,
    number: Number,
    last: Option<&Last>,
    facts: &Facts<'_>,
) -> Result<(), Refusal> {
    if last.is_some_and(|last| number <= last.number) {
        return Err(Refusal::Number { what, number: words(number) });
    }
    let highest = highest(facts);
    if number > highest {
        return Err(Refusal::High { what, number: words(number), highest: words(highest) });
    }
    Ok(())
}

/// Whether an authority may sign one more certificate for a file.
pub(super) fn certificate(issuer: &Authority, file: &str, facts: &Facts<'_>) -> Result<(), Refusal> {
    let most = if file == issuer.manifest_name() { MOST_OF_MANIFEST } else { MOST_CERTIFICATES };
    let standing = facts.memory.of(&issuer.name).map_or(0, |issued| issued.standing(file, facts.now));
    if standing < most {
        return Ok(());
    }
    Err(Refusal::Full { what: format!("certificates of {file} that have neither ended nor been revoked"), most })
}

/// Whether a key may be for this: it is for nothing else, and it or another one is not too many.
pub(super) fn key(key: &Number, purpose: &Purpose, facts: &Facts<'_>) -> Result<(), Refusal> {
    match facts.memory.purpose(key) {
        Some(before) if before == purpose => Ok(()),
        Some(_) => Err(Refusal::SecondContent),
        None if facts.memory.keys_for(purpose) < MOST_KEYS => Ok(()),
        None => {
            let fits = |key: Number| facts.memory.purpose(&key) == Some(purpose);
            let found = facts.pool.keys().find(|(_, public)| fits(public.key_identifier().into()));
            let usable =
                found.map_or_else(|| "none of them is in the pool".to_owned(), |(name, _)| format!("{name} may"));
            Err(Refusal::Keys { most: MOST_KEYS, usable })
        }
    }
}
