//! Publication points: a list of revoked certificates, a manifest, and the files on it.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use rpki::repository::Cert;
use theta_rpki::registry::Authority;

use super::{IssueError, Issuer, NO_KEY, Published, Run, authorities::Problem, serial};
use crate::{
    hands::{Key, Unsigned},
    made::{self, Stamp},
    output::Output,
    state::{Certified, Current},
};

/// The highest number that an agent permits rises by two to the power of this in each second (`spec/rpki.md`).
const NUMBERS_A_SECOND: u32 = 20;
/// So many tries for a certificate may stand beside the last one: half of what agents permit.
const MOST_TRIES: usize = 32;

/// What is to be published by an authority.
struct Point {
    /// The digests of its files, but for the list.
    files: BTreeMap<String, String>,
    /// When the first thing ends that a manifest would have, or that is above it.
    ends: i64,
    /// Serial numbers of what is published no more.
    withdrawn: BTreeSet<u64>,
    /// Serial numbers of earlier manifests' certificates, whose keys are used again.
    replaced: BTreeSet<u64>,
}

impl<'a> Run<'a> {
    /// Publishes what an authority has, with a new list and manifest if something has changed, or half of their time is over.
    pub(super) fn publish(&mut self, of: &Authority) -> Result<(), IssueError> {
        // A manifest has all or nothing.
        if self.has_failed(of) {
            return Ok(());
        }
        match self.bring_out(of) {
            Ok(published) => {
                self.report.published.push(published);
                Ok(())
            }
            Err(Problem::Made(error)) => {
                self.fail(of, &of.manifest_name(), &error);
                Ok(())
            }
            Err(Problem::Run(error)) => Err(error),
        }
    }

    fn bring_out(&mut self, of: &Authority) -> Result<Published, Problem> {
        let point = self.point(of)?;
        let known = self.known().of(&of.name).current.clone().filter(|current| !self.is_due(current, &point));
        let is_new = known.is_none();
        let current = match known {
            Some(current) => current,
            None => self.renew(of, &point)?,
        };
        self.put_out(of, &current).map_err(IssueError::from)?;
        Ok(Published { authority: of.name.clone(), is_new, files: current.files.len(), until: current.until })
    }

    fn is_due(&self, current: &Current, point: &Point) -> bool {
        let half = current.from.saturating_add(current.until.saturating_sub(current.from) / 2);
        let lost = |digest: &String| self.issuer.output.find(digest).is_none();
        current.files != point.files
            || current.withdrawn != point.withdrawn
            || self.issuer.now >= half
            || [&current.list, &current.manifest].into_iter().any(lost)
    }

    fn point(&mut self, of: &Authority) -> Result<Point, Problem> {
        let (registry, output, now) = (self.issuer.registry, self.issuer.output, self.issuer.now);
        let mut ends = i64::MAX;
        let mut above = Some(of);
        while let Some(authority) = above {
            let (_, end) = certificate_of(output, authority)?;
            ends = ends.min(end);
            above = authority.parent.as_deref().and_then(|parent| registry.authority(parent));
        }
        let issued = self.known().of(&of.name);
        let mut files = BTreeMap::new();
        for (file, kept) in &issued.objects {
            files.insert(file.clone(), kept.digest.clone());
            ends = ends.min(kept.until);
        }
        for child in registry.children(of) {
            let (bytes, end) = certificate_of(output, child)?;
            ends = ends.min(end);
            files.insert(child.certificate_name(), output.put(&bytes).map_err(IssueError::from)?);
        }
        let own = [of.manifest_name(), of.certificate_name()];
        let wanted = |file: &String| files.contains_key(file) || own.contains(file);
        let standing = issued.certificates.iter().filter(|certified| certified.until > now);
        let withdrawn = standing.filter(|certified| !wanted(&certified.file)).map(|certified| certified.serial);
        let withdrawn = withdrawn.collect();
        let mut replaced = replaced(&issued.certificates, &of.manifest_name());
        let revoked = issued.certificates.iter().filter(|certified| certified.is_revoked && certified.until > now);
        replaced.extend(revoked.map(|certified| certified.serial));
        Ok(Point { files, ends, withdrawn, replaced })
    }

    /// Has a list and a manifest signed.
    fn renew(&mut self, of: &Authority, point: &Point) -> Result<Current, Problem> {
        let (now, number) = (self.issuer.now, self.next_number(of));
        let issued = self.known().of(&of.name);
        // Relying parties keep the manifest that they have if the next one does not begin later.
        let from = now.max(issued.from.saturating_add(1));
        issued.from = from;
        let until = point.ends.min(from.saturating_add(self.issuer.registry.terms.longest_list));
        let (key, stamp) = self.manifest_key(of, point, (from, until))?;
        // What is asked for is written down first.
        self.state.save().map_err(IssueError::from)?;

        let (hands, output) = (self.issuer.hands, self.issuer.output);
        let put = |bytes: &[u8]| output.put(bytes).map_err(IssueError::from);
        let revoked: Vec<u64> = point.withdrawn.union(&point.replaced).copied().collect();
        let list = put(&made::list(hands, of, number, (from, until), &revoked)?)?;
        let on_it = point.files.iter().map(|(file, digest)| (file.clone(), digest)).chain([(of.list_name(), &list)]);
        let on_it = on_it.map(|(file, digest)| (file, hex::decode(digest).unwrap_or_default())).collect();
        let manifest = made::manifest_content(number, (from, until), &on_it);
        let content = put(&made::manifest_bytes(&manifest))?;
        let manifest = put(&made::manifest(hands, of, manifest, key, stamp)?)?;
        self.signed(of, stamp.serial);
        let (files, withdrawn) = (point.files.clone(), point.withdrawn.clone());
        let current = Current { from, until, files, withdrawn, list, content, manifest };
        self.known().of(&of.name).current = Some(current.clone());
        self.state.save().map_err(IssueError::from)?;
        Ok(current)
    }

    /// The number of the next list and manifest, which is noted.
    fn next_number(&mut self, of: &Authority) -> u64 {
        let first = u64::try_from(self.issuer.now).unwrap_or_default() << NUMBERS_A_SECOND;
        let issued = self.known().of(&of.name);
        issued.number = first.max(issued.number.saturating_add(1));
        issued.number
    }

    /// Agents take so many certificates of a file that have not ended. Where many tries came to nothing, a list revokes all but the last of them; it is not
    /// published by itself.
    pub(super) fn make_room(&mut self, of: &Authority, file: &str) -> Result<(), Problem> {
        let Issuer { registry, authorised, now, .. } = self.issuer;
        let certificates = &self.known().of(&of.name).certificates;
        let stands = |certified: &&Certified| certified.until > now && !certified.is_revoked;
        let tries: Vec<u64> =
            certificates.iter().filter(|it| it.file == file).filter(stands).map(|it| it.serial).collect();
        let Some((_, older)) = tries.split_last().filter(|(_, older)| older.len() >= MOST_TRIES) else { return Ok(()) };
        let mut wanted = BTreeSet::from([of.manifest_name(), of.certificate_name()]);
        wanted.extend(of.member.iter().flat_map(|member| authorised.of(member)).map(|one| one.file_name()));
        wanted.extend(registry.children(of).map(Authority::certificate_name));
        let goes = |it: &&Certified| it.is_revoked || older.contains(&it.serial) || !wanted.contains(&it.file);
        let mut revoked: BTreeSet<u64> =
            certificates.iter().filter(|it| it.until > now).filter(goes).map(|it| it.serial).collect();
        revoked.extend(replaced(certificates, &of.manifest_name()));
        let number = self.next_number(of);
        // A list begins no earlier than the last one.
        let from = now.max(self.known().of(&of.name).from);
        self.state.save().map_err(IssueError::from)?;
        let revoked: Vec<u64> = revoked.into_iter().collect();
        let until = from.saturating_add(registry.terms.longest_list);
        made::list(self.issuer.hands, of, number, (from, until), &revoked)?;
        for certified in &mut self.known().of(&of.name).certificates {
            certified.is_revoked |= older.contains(&certified.serial);
        }
        Ok(self.state.save().map_err(IssueError::from)?)
    }

    /// A key for the next manifest, of which no certificate that stands ends before it, since agents refuse that; and its certificate's numbers,
    /// which are noted.
    fn manifest_key(
        &mut self,
        of: &Authority,
        point: &Point,
        (now, until): (i64, i64),
    ) -> Result<(Key<'a>, Stamp), Problem> {
        let file = of.manifest_name();
        let certificates = self.known().of(&of.name).certificates.clone();
        let may = |key: &str| {
            let short = |certified: &Certified| {
                let stands = certified.until > now && !point.replaced.contains(&certified.serial);
                certified.key == key && certified.file == file && stands && certified.until < until
            };
            !certificates.iter().any(short)
        };
        let key = self.key(&format!("manifests of {}", of.name), may);
        let (name, public) = key.ok_or_else(|| Problem::Made(Unsigned(NO_KEY.to_owned()).into()))?;
        let (serial, key) = (serial()?, name.to_owned());
        let asked =
            Certified { serial, file: file.clone(), from: now, until, key, is_signed: false, is_revoked: false };
        self.known().of(&of.name).certificates.push(asked);
        Ok((Key { name, public }, Stamp { now, until, serial }))
    }

    /// Puts files where they are published: first what the manifest has, then the manifest, and then nothing else is left there.
    fn put_out(&self, of: &Authority, current: &Current) -> io::Result<()> {
        let output = self.issuer.output;
        let own = [(of.list_name(), &current.list), (of.manifest_name(), &current.manifest)];
        let files = current.files.iter().map(|(file, digest)| (file.clone(), digest)).chain(own);
        let mut names = BTreeSet::new();
        for (file, digest) in files {
            let bytes = output.find(digest).ok_or_else(|| io::Error::other(format!("{digest}, {file}, is lost")))?;
            output.publish(&of.address(&file), &bytes)?;
            names.insert(file);
        }
        output.keep_only(of.repository.as_str(), &names)
    }
}

/// Certificates of manifests before the last one that was signed. Agents know that one, or one after it, as the last: they may be revoked.
fn replaced(certificates: &[Certified], manifest: &str) -> BTreeSet<u64> {
    let of_manifests: Vec<_> = certificates.iter().filter(|certified| certified.file == manifest).collect();
    let last = of_manifests.iter().rposition(|certified| certified.is_signed).unwrap_or(0);
    of_manifests.into_iter().take(last).map(|certified| certified.serial).collect()
}

/// The certificate of an authority, and when it ends.
fn certificate_of(output: &Output, of: &Authority) -> Result<(Vec<u8>, i64), Problem> {
    let bytes = output.published(of.certificate.as_str()).unwrap_or_default();
    let certificate = Cert::decode(bytes.as_slice());
    let missing = |_| Problem::Made(Unsigned(format!("the certificate of {} is not there", of.name)).into());
    let end = certificate.map_err(missing)?.validity().not_after().timestamp();
    Ok((bytes, end))
}
