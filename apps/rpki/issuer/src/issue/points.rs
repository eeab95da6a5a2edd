//! Publication points: a list of revoked certificates, a manifest, and the files on it.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use rpki::repository::{Cert, sigobj::SignedObject};
use theta_rpki::{consent::spared, registry::Authority};

use super::{IssueError, NO_KEY, Published, Run, authorities::Problem, manifests_of, serial};
use crate::{
    hands::{Key, Unsigned},
    made::{self, Stamp},
    output::Output,
    state::{Certified, Current, Issued, SerialNumber},
};

/// The highest number that an agent permits rises by two to the power of this in each second (`spec/rpki.md`).
const NUMBERS_A_SECOND: u32 = 20;
/// So many serial numbers are taken of an authority's list from the words of agents, any of which may lie; and so many at once.
const MOST_TOLD: usize = 16_384;
const MOST_HEARD: usize = 64;
/// So many are on a list at most: agents read 4 MiB.
const MOST_LISTED: usize = 65_536;

/// Files with their digests, which are to be on a manifest beside its list.
type Files = BTreeMap<String, String>;

/// What is known of files that are to be on a manifest.
struct Looked {
    /// When the first thing ends that the manifest would have, or that is above it.
    ends: i64,
    /// The serial numbers of the certificates in the files.
    serials: BTreeSet<SerialNumber>,
}

impl<'a> Run<'a> {
    /// Publishes what an authority has, with a new list and manifest if something has changed, or half of their time is over.
    pub(super) fn publish(&mut self, of: &Authority) -> Result<(), IssueError> {
        match self.bring_out(of) {
            Ok(Some(published)) => self.report.published.push(published),
            Ok(None) => {}
            Err(Problem::Made(error)) => self.fail(of, &of.manifest_name(), &error),
            Err(Problem::Run(error)) => return Err(error),
        }
        Ok(())
    }

    fn bring_out(&mut self, of: &Authority) -> Result<Option<Published>, Problem> {
        let files = self.files(of)?;
        let known = self.known().of(&of.name).current.clone();
        let unsettled = of.member.as_deref().and_then(|member| self.issuer.authorised.unsettled(member));
        if let Some(reason) = unsettled {
            self.fail(of, &of.manifest_name(), &reason);
        }
        let old = match known {
            Some(current) if !self.is_due(&current, &files) => return self.put_out(of, &current, false).map(Some),
            known => known,
        };
        let is_old = old.as_ref().is_some_and(|current| self.is_half_over(current));
        // A manifest has all or nothing, so agents would refuse one without what is still to be made; unless only this registry knows of that.
        let nothing = unsettled.is_some() || (self.lacks(of) && old.is_some() && !is_old);
        let renewed = if nothing { None } else { Some(self.renew(of, &files)) };
        // What the other registries do not know of yet must not end what is published.
        let again = match (renewed, old) {
            (None, Some(old)) if is_old => old.files,
            (None, _) => return Ok(None),
            (Some(Err(Problem::Made(error))), Some(old)) if is_old && old.files != files => {
                self.fail(of, &of.manifest_name(), &error);
                old.files
            }
            (Some(renewed), _) => return self.put_out(of, &renewed?, true).map(Some),
        };
        let current = self.renew(of, &again)?;
        self.put_out(of, &current, true).map(Some)
    }

    /// Whether something of an authority was not made in this run.
    fn lacks(&self, of: &Authority) -> bool {
        let missing = |file: &str| {
            let objects = self.state.state.authorities.get(&of.name).map(|issued| &issued.objects);
            objects.is_none_or(|objects| !objects.contains_key(file))
        };
        let stated = of.member.iter().flat_map(|member| self.issuer.authorised.files(member));
        stated.into_iter().any(|(file, _)| missing(file))
    }

    fn is_half_over(&self, current: &Current) -> bool {
        let half = current.from.saturating_add(current.until.saturating_sub(current.from) / 2);
        self.issuer.now >= half
    }

    fn is_due(&self, current: &Current, files: &Files) -> bool {
        let lost = |digest: &String| self.issuer.output.find(digest).is_none();
        current.files != *files
            || self.is_half_over(current)
            || [&current.list, &current.manifest].into_iter().any(lost)
    }

    /// What an authority has now: objects, and the certificates of authorities below it. One that has none yet is not there.
    fn files(&mut self, of: &Authority) -> Result<Files, Problem> {
        let objects = &self.known().of(&of.name).objects;
        let mut files: Files = objects.iter().map(|(file, kept)| (file.clone(), kept.digest.clone())).collect();
        for child in self.issuer.registry.children(of) {
            if let Some((_, bytes)) = self.last_certificate(child) {
                files.insert(child.certificate_name(), self.put(&bytes)?);
            }
        }
        Ok(files)
    }

    fn look(&self, of: &Authority, files: &Files) -> Result<Looked, Problem> {
        let (registry, output) = (self.issuer.registry, self.issuer.output);
        let mut looked = Looked { ends: i64::MAX, serials: BTreeSet::new() };
        let mut above = Some(of);
        while let Some(authority) = above {
            looked.ends = looked.ends.min(end_of(output, authority)?);
            above = registry.parent(authority);
        }
        for (file, digest) in files {
            let bytes = output.find(digest).ok_or_else(|| lost(file, digest))?;
            let object = SignedObject::decode(bytes.as_slice(), true).ok().map(|object| object.cert().clone());
            let certificate =
                object.map_or_else(|| Cert::decode(bytes.as_slice()), Ok).map_err(|_| lost(file, digest))?;
            looked.ends = looked.ends.min(certificate.validity().not_after().timestamp());
            looked.serials.insert(SerialNumber(certificate.serial_number().into_array()));
        }
        Ok(looked)
    }

    /// Has a list and a manifest signed. The list revokes all certificates that are known and have not ended, but for those that are in use.
    fn renew(&mut self, of: &Authority, files: &Files) -> Result<Current, Problem> {
        let Looked { ends, mut serials } = self.look(of, files)?;
        let (now, terms, number) = (self.issuer.now, self.issuer.registry.terms, self.next_number(of));
        let issued = self.known().of(&of.name);
        // Relying parties keep the manifest that they have if the next one does not begin later. Agents have refused what is later than they permit: a clock was wrong.
        let next = issued.from.saturating_add(1);
        let from = if next <= now.saturating_add(terms.clocks) { now.max(next) } else { now };
        issued.from = from;
        let until = ends.min(from.saturating_add(terms.longest_list));
        let (key, stamp) = self.manifest_key(of, (from, until))?;
        serials.insert(stamp.serial);
        let revoked = self.revoked(of, &serials, key.name);
        if revoked.len() > MOST_LISTED {
            self.set_aside(key.name);
            let reason = format!(
                "{} certificates would be on the list, more than {MOST_LISTED}; another key may need fewer",
                revoked.len()
            );
            return Err(Problem::Made(Unsigned(reason).into()));
        }
        // What is asked for is written down first.
        self.state.save().map_err(IssueError::from)?;

        let hands = self.issuer.hands;
        let list = made::list(hands, of, number, (from, until), &revoked);
        let list = list.inspect_err(|error| self.hear(of, &error.to_string(), terms.longest_object))?;
        let list = self.put(&list)?;
        let on_it = files.iter().map(|(file, digest)| (file.clone(), digest)).chain([(of.list_name(), &list)]);
        let on_it = on_it.map(|(file, digest)| (file, hex::decode(digest).unwrap_or_default())).collect();
        let manifest = made::manifest_content(number, (from, until), &on_it);
        let content = self.put(&made::manifest_bytes(&manifest))?;
        let manifest = made::manifest(hands, of, manifest, key, stamp).inspect_err(|error| {
            self.unused(of, stamp, error);
            self.doubt(key.name, &error.to_string());
            // Certificates of manifests.
            self.hear(of, &error.to_string(), terms.exposure());
        })?;
        let manifest = self.put(&manifest)?;
        self.signed(of, stamp.serial);
        let current = Current { from, until, files: files.clone(), list, content, manifest };
        let issued = self.known().of(&of.name);
        issued.current = Some(current.clone());
        issued.certificates.iter_mut().for_each(|one| one.is_revoked |= revoked.contains(&one.serial));
        self.state.save().map_err(IssueError::from)?;
        Ok(current)
    }

    /// The certificates of an authority that were signed, have not ended, and are not in use; and those for its manifests that are for the key of the next one, signed
    /// or not, since agents do not take it otherwise. An anchor's own is on no list.
    fn revoked(&mut self, of: &Authority, used: &BTreeSet<SerialNumber>, key: &str) -> BTreeSet<SerialNumber> {
        let now = self.issuer.now;
        let Issued { certificates, told, .. } = self.known().of(&of.name);
        let goes = |one: &&Certified| one.is_signed || (one.file == of.manifest_name() && one.key == key);
        let all = certificates.iter().filter(|one| one.until > now && one.file != of.certificate_name()).filter(goes);
        all.map(|one| one.serial).chain(told.keys().copied()).filter(|serial| !used.contains(serial)).collect()
    }

    /// The number of the next list and manifest, which is noted. One above what agents permit now was refused by them: a clock was wrong.
    fn next_number(&mut self, of: &Authority) -> u64 {
        let at = |seconds: i64| u64::try_from(seconds).unwrap_or_default() << NUMBERS_A_SECOND;
        let (first, highest) =
            (at(self.issuer.now), at(self.issuer.now.saturating_add(self.issuer.registry.terms.clocks)));
        let issued = self.known().of(&of.name);
        let next = Some(issued.number.saturating_add(1)).filter(|next| *next <= highest);
        issued.number = first.max(next.unwrap_or_default());
        issued.number
    }

    /// Notes serial numbers that agents miss on the list: those of certificates that somebody else had signed, which last so many seconds at most. The next list has
    /// them. Where there are too many, those go that end first: what is missed again is said again.
    fn hear(&mut self, of: &Authority, objection: &str, lasts: i64) {
        let until = self.issuer.now.saturating_add(lasts);
        let told = &mut self.known().of(&of.name).told;
        told.extend(spared(objection).take(MOST_HEARD).map(|serial| (SerialNumber(serial), until)));
        while told.len() > MOST_TOLD {
            let Some(first) = told.iter().min_by_key(|(_, until)| **until).map(|(serial, _)| *serial) else { return };
            told.remove(&first);
        }
    }

    /// A key for the next manifest, whose earlier certificates its list revokes; and its certificate's numbers, which are noted.
    fn manifest_key(&mut self, of: &Authority, (now, until): (i64, i64)) -> Result<(Key<'a>, Stamp), Problem> {
        let key = self.key(&manifests_of(&of.name)).ok_or_else(|| Problem::Made(Unsigned(NO_KEY.to_owned()).into()))?;
        let (serial, file, name) = (serial()?, of.manifest_name(), key.name.to_owned());
        self.known().of(&of.name).certificates.push(Certified::asked(serial, file, (now, until), name));
        Ok((key, Stamp { now, until, serial, is_new: true }))
    }

    /// Puts files where they are published: first what the manifest has, then the manifest, and then nothing else is left there. A folder that cannot be written is
    /// that authority's matter, and the others go on.
    fn put_out(&self, of: &Authority, current: &Current, is_new: bool) -> Result<Published, Problem> {
        self.write(of, current)?;
        Ok(Published { authority: of.name.clone(), is_new, files: current.files.len(), until: current.until })
    }

    fn write(&self, of: &Authority, current: &Current) -> Result<(), Problem> {
        let output = self.issuer.output;
        let own = [(of.list_name(), &current.list), (of.manifest_name(), &current.manifest)];
        let files = current.files.iter().map(|(file, digest)| (file.clone(), digest)).chain(own);
        let mut names = BTreeSet::new();
        for (file, digest) in files {
            let bytes = output.find(digest).ok_or_else(|| lost(&file, digest))?;
            output.publish(&of.address(&file), &bytes).map_err(|error| unwritten(&file, &error))?;
            names.insert(file);
        }
        output.keep_only(of.repository.as_str(), &names).map_err(|error| unwritten(of.repository.as_str(), &error))
    }
}

/// What is said of what cannot be put where it is published.
pub(super) fn unwritten(what: &str, error: &io::Error) -> Problem {
    Problem::Made(Unsigned(format!("{what} cannot be written where it is published: {error}")).into())
}

/// What is said of a file that is not where it was put. It is made anew, or, if it is still what is to be published, taken from there.
fn lost(file: &str, digest: &str) -> Problem {
    Problem::Made(Unsigned(format!("{file} is lost: there is no sha256/{digest}")).into())
}

/// When the certificate of an authority ends, which is published.
fn end_of(output: &Output, of: &Authority) -> Result<i64, Problem> {
    let bytes = output.published(of.certificate.as_str()).unwrap_or_default();
    let missing = |_| Problem::Made(Unsigned(format!("the certificate of {} is not there", of.name)).into());
    Ok(Cert::decode(bytes.as_slice()).map_err(missing)?.validity().not_after().timestamp())
}
