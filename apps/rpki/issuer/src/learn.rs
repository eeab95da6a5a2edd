//! What an issuer takes from an agent's memory: where its own state was lost or is an old one, or others have had things signed that it does not know of.

use std::collections::{BTreeMap, BTreeSet};

use theta_rpki::{
    memory::{Entry, Issued, Memory, Number, Purpose},
    registry::{Pool, Registry},
};

use crate::{
    issue::manifests_of,
    state::{Certified, SerialNumber, State},
};

/// How much was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Learnt {
    /// Certificates that were not known, and have not ended.
    pub certificates: usize,
    /// Keys of the pool of which it was not known what they are for.
    pub keys: usize,
}

/// The names of keys, by their identifiers.
type Names<'a> = BTreeMap<Number, &'a str>;

/// The lowest bytes of a number, if there is nothing above them.
fn low(number: &Number) -> Option<u64> {
    let (high, low) = number.split_last_chunk::<8>()?;
    high.iter().all(|byte| *byte == 0).then_some(u64::from_be_bytes(*low))
}

impl State {
    /// Takes what an agent has agreed to and has counted. What was known stays; what the agent has of keys is believed, since it decides.
    pub fn learn(&mut self, memory: &Memory, registry: &Registry, pool: &Pool, now: i64) -> Learnt {
        let mut learnt = Learnt::default();
        let names: Names<'_> = pool.keys().map(|(name, public)| (public.key_identifier().into(), name)).collect();
        for authority in &registry.authorities {
            if let Some(issued) = memory.of(&authority.name) {
                // Agents demand on lists what may be on a manifest since then, and nothing else: all that was ever published would outgrow them.
                let since = now.saturating_sub(registry.terms.exposure());
                learnt.certificates += self.learn_issued(&authority.name, issued, &names, (since, now));
            }
            let contents = memory.contents_of(&authority.name).into_iter().flatten().map(hex::encode);
            self.of(&authority.name).contents.extend(contents);
        }
        for (key, purpose) in memory.purposes() {
            let Some(key) = names.get(key) else { continue };
            let purpose = match purpose {
                Purpose::Content(digest) => hex::encode(digest),
                Purpose::Manifests(authority) => manifests_of(authority),
            };
            self.doubted.remove(*key);
            if self.keys.insert((*key).to_owned(), purpose.clone()).as_ref() != Some(&purpose) {
                learnt.keys += 1;
            }
        }
        let before = self.statements();
        let all = memory
            .members()
            .flat_map(|member| memory.statements_of(member).map(move |(subject, counted)| (member, subject, counted)));
        for (member, subject, counted) in all {
            if before.counted(member, subject).is_none_or(|before| before.rank() < counted.rank()) {
                let (member, subject) = (member.to_owned(), subject.to_owned());
                self.count(&Entry::Statement { member, subject, counted: *counted });
            }
        }
        learnt
    }

    fn learn_issued(&mut self, authority: &str, issued: &Issued, names: &Names<'_>, (since, now): (i64, i64)) -> usize {
        let known = self.of(authority);
        let manifest = issued.manifest().map(|manifest| manifest.last);
        for last in [issued.list().copied(), manifest].into_iter().flatten() {
            known.number = known.number.max(low(&last.number).unwrap_or_default());
            known.from = known.from.max(last.from);
        }
        // What was published since is not overwritten: it is renewed.
        if let (Some(current), Some(last)) = (&mut known.current, manifest)
            && hex::encode(last.digest) != current.content
            && last.from >= current.from
        {
            current.until = current.from;
        }
        let before: BTreeSet<_> = known.certificates.iter().map(|certified| certified.serial).collect();
        let exposed: BTreeMap<_, _> = issued.exposed(since).filter(|(_, published)| published.until > now).collect();
        for one in &mut known.certificates {
            one.is_signed |= exposed.contains_key(&one.serial.0);
        }
        for (number, certified) in issued.certificates().filter(|(_, certified)| certified.until > now) {
            let serial = SerialNumber(*number);
            if before.contains(&serial) {
                continue;
            }
            known.certificates.push(Certified {
                serial,
                file: certified.file.clone(),
                from: certified.from,
                until: certified.until,
                key: names.get(&certified.key).copied().unwrap_or_default().to_owned(),
                is_signed: exposed.contains_key(number),
                is_learnt: true,
                is_revoked: issued.is_revoked(number),
            });
        }
        let learnt = known.certificates.len().saturating_sub(before.len());
        let all: BTreeSet<_> = known.certificates.iter().map(|certified| certified.serial).collect();
        let unknown = exposed.into_iter().map(|(number, published)| (SerialNumber(*number), published.until));
        known.told.extend(unknown.filter(|(serial, _)| !all.contains(serial)));
        learnt
    }
}
