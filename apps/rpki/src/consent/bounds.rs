//! What one issuer can use up at most of what all need: numbers, keys of the pool, and lines of the memory, which certificates, lists and manifests take. What it has used up is there again a day
//! later; keys that it had bound to contents and manifests are for those, and usable for them, unless it had them bound otherwise at each registry.

use std::collections::BTreeSet;

use super::{Facts, Refusal, refusal::MAY, words};
use crate::{
    memory::{Digest, Issued, Last, LastManifest, MOST_BEGUN, Number, Purpose},
    registry::Authority,
};

/// So many keys are taken for the manifests of one authority in a day; they may sign them again.
const MOST_MANIFEST_KEYS: usize = 8;
/// So many keys are taken for one content in a day. One is enough, but for an issuer that does not know which.
const MOST_OBJECT_KEYS: usize = 4;
/// So many certificates of a file begin in a day: whoever has filled that keeps others from it for a day.
const MOST_CERTIFICATES: usize = 64;
const DAY: i64 = 86_400;
/// So many certificates are for the keys of one manifest. It takes one.
const MOST_OF_MANIFEST: usize = 4;
/// So often another key may come to sign the same manifest. It takes one.
const MOST_CHANGES: usize = 8;
/// Where as many lists or manifests have begun in a day as may, another one begins so many seconds after the last one. So whoever asks for as many as he can
/// keeps others from it only while he goes on.
const PAUSE: i64 = 1_800;
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

/// Whether one more list or manifest may begin, where so many have begun within a day, and this is the last one.
fn one_more(what: &str, begun: usize, last: Option<&Last>, facts: &Facts<'_>) -> Result<(), Refusal> {
    let has_paused = last.is_none_or(|last| facts.now.saturating_sub(last.from) >= PAUSE);
    if begun < MOST_BEGUN || has_paused {
        return Ok(());
    }
    let what = format!("{what} that have begun within a day (half an hour after the last one another may)");
    Err(Refusal::Full { what, most: MOST_BEGUN })
}

/// Whether an authority may sign one more list.
pub(super) fn list(issuer: &Authority, facts: &Facts<'_>) -> Result<(), Refusal> {
    let Some(issued) = facts.memory.of(&issuer.name) else { return Ok(()) };
    let begun = issued.lists_begun(facts.now.saturating_sub(DAY));
    one_more(&format!("lists of {}", issuer.name), begun, issued.list(), facts)
}

/// Whether an authority may have one more manifest.
pub(super) fn manifest(issuer: &Authority, facts: &Facts<'_>) -> Result<(), Refusal> {
    let Some(issued) = facts.memory.of(&issuer.name) else { return Ok(()) };
    let begun = issued.manifests_begun(facts.now.saturating_sub(DAY));
    let last = issued.manifest().map(|manifest| &manifest.last);
    one_more(&format!("manifests of {}", issuer.name), begun, last, facts)
}

/// Whether an authority may sign one more certificate for a file.
pub(super) fn certificate(issuer: &Authority, file: &str, facts: &Facts<'_>) -> Result<(), Refusal> {
    let issued = facts.memory.of(&issuer.name);
    if file == issuer.manifest_name() {
        let of_last = issued.and_then(Issued::manifest).map_or(0, |manifest| manifest.certificates);
        if of_last < MOST_OF_MANIFEST {
            return Ok(());
        }
        return Err(Refusal::Full { what: format!("certificates for the last {file}"), most: MOST_OF_MANIFEST });
    }
    let begun = issued.map_or(0, |issued| issued.begun(file, facts.now.saturating_sub(DAY)));
    if begun < MOST_CERTIFICATES {
        return Ok(());
    }
    let what = format!("certificates of {file} that have begun within a day");
    Err(Refusal::Full { what, most: MOST_CERTIFICATES })
}

/// Whether another key may sign the last manifest of an authority: each change of keys is a line of the memory.
pub(super) fn change(issuer: &Authority, last: &LastManifest, key: &Number) -> Result<(), Refusal> {
    if last.key == *key || last.changes < MOST_CHANGES {
        return Ok(());
    }
    Err(Refusal::Full {
        what: format!("changes of the key of the last {}", issuer.manifest_name()),
        most: MOST_CHANGES,
    })
}

/// Whether a key may be for the manifests of an authority.
pub(super) fn manifest_key(issuer: &Authority, key: &Number, facts: &Facts<'_>) -> Result<(), Refusal> {
    purpose(key, &Purpose::Manifests(issuer.name.clone()), MOST_MANIFEST_KEYS, facts)
}

/// Whether a key may be for a content of an authority's objects. A content that has no key yet is one more of those that its member may have. (Contents are
/// counted, and not keys: whoever asks can have a content take keys, but not have a member state more.)
pub(super) fn object_key(issuer: &Authority, key: &Number, content: Digest, facts: &Facts<'_>) -> Result<(), Refusal> {
    let content = Purpose::Content(content);
    purpose(key, &content, MOST_OBJECT_KEYS, facts)?;
    let most = facts.registry.objects(issuer);
    let has = facts.memory.contents_of(&issuer.name).map_or(0, BTreeSet::len);
    if facts.memory.has_keys(&content) || has < most {
        return Ok(());
    }
    Err(Refusal::Objects { of: issuer.name.clone(), most })
}

/// Whether a key may be for this: it is for nothing else, and it or another one is not too many.
fn purpose(key: &Number, purpose: &Purpose, most: usize, facts: &Facts<'_>) -> Result<(), Refusal> {
    match facts.memory.purpose(key) {
        Some(before) if before == purpose => Ok(()),
        Some(_) => Err(Refusal::SecondContent),
        None if facts.memory.keys_since(purpose, facts.now.saturating_sub(DAY)) < most => Ok(()),
        None => {
            let fits = |key: Number| facts.memory.purpose(&key) == Some(purpose);
            let found = facts.pool.keys().find(|(_, public)| fits(public.key_identifier().into()));
            let usable =
                found.map_or_else(|| "none of them is in the pool".to_owned(), |(name, _)| format!("{name}{MAY}"));
            Err(Refusal::Keys { most, usable })
        }
    }
}
