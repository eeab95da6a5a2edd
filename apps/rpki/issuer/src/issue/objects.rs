//! ROAs and ASPAs: each content has a key of the pool, and its certificate is renewed before a manifest would outlast it.

use rpki::repository::sigobj::SignedObject;
use theta_rpki::{attestation::Attestation, consent::blames_quota, registry::Authority};

use super::{IssueError, Issuer, NO_KEY, Run, authorities::Problem};
use crate::{
    hands::{Hands, Key, Unsigned, together},
    made::{self, MakeError, Stamp},
    state::{Certified, Kept, SerialNumber},
};

/// So many are asked for before it is written down what has come of it.
const ROUND: usize = 256;
/// An object is made anew when its certificate lasts no longer than so many manifests.
const MANIFESTS_AHEAD: i64 = 2;

/// An object that is to be made.
struct Task<'a> {
    authority: &'a Authority,
    attestation: &'a Attestation,
    key: Key<'a>,
    stamp: Stamp,
}

impl<'a> Run<'a> {
    /// Makes what is authorised and not there, or not for long.
    pub(super) fn make_objects(&mut self) -> Result<(), IssueError> {
        let (registry, authorised) = (self.issuer.registry, self.issuer.authorised);
        let mut due = Vec::new();
        for authority in &registry.authorities {
            let Some(member) = authority.member.as_deref() else { continue };
            // What a member has stated is not known as a whole: what is there stays.
            if authorised.unsettled(member).is_some() {
                continue;
            }
            self.known().of(&authority.name).objects.retain(|file, _| authorised.file(member, file).is_some());
            for one in authorised.of(member) {
                self.take_over(authority, one)?;
            }
            let stated = authorised.of(member).filter(|one| !self.is_there(authority, one));
            due.extend(stated.map(|one| (authority, one)));
        }
        let all = due.len();
        for (round, due) in due.chunks(ROUND).enumerate() {
            if all > ROUND {
                tracing::info!("{} of {all} objects are made", round.saturating_mul(ROUND));
            }
            self.make_round(due)?;
        }
        Ok(())
    }

    /// Takes an object that is published and not known here: the state was lost, and what is published has to be renewed. The authority has certified its key; agents
    /// look at the rest.
    fn take_over(&mut self, authority: &Authority, attestation: &Attestation) -> Result<(), IssueError> {
        let file = attestation.file_name();
        if self.known().of(&authority.name).objects.contains_key(&file) {
            return Ok(());
        }
        let Some(bytes) = self.issuer.output.published(&authority.address(&file)) else { return Ok(()) };
        let Ok(object) = SignedObject::decode(bytes.as_slice(), true) else { return Ok(()) };
        let certificate = object.cert();
        let serial = SerialNumber(certificate.serial_number().into_array());
        let is_revoked = |one: &Certified| one.serial == serial && one.is_revoked;
        let is_good = object.content().to_bytes() == attestation.encode()
            && self
                .last_certificate(authority)
                .is_some_and(|(above, _)| certificate.verify_signature(&above, true).is_ok())
            && !self.known().of(&authority.name).certificates.iter().any(is_revoked);
        if is_good {
            let kept = Kept { digest: self.put(&bytes)?, until: certificate.validity().not_after().timestamp() };
            self.known().of(&authority.name).objects.insert(file, kept);
        }
        Ok(())
    }

    /// Whether an object is there, with today's addresses, and lasts.
    fn is_there(&mut self, authority: &Authority, attestation: &Attestation) -> bool {
        let (output, now, terms) = (self.issuer.output, self.issuer.now, self.issuer.registry.terms);
        let file = attestation.file_name();
        let Some(kept) = self.known().of(&authority.name).objects.get(&file) else { return false };
        let enough = now.saturating_add(terms.longest_list.saturating_mul(MANIFESTS_AHEAD));
        if kept.until <= enough {
            return false;
        }
        let Some(Ok(object)) = output.find(&kept.digest).map(|bytes| SignedObject::decode(bytes.as_slice(), true))
        else {
            return false;
        };
        let certificate = object.cert();
        let is = |found: Option<&rpki::uri::Rsync>, wanted: &str| found.is_some_and(|found| found.as_str() == wanted);
        is(certificate.signed_object(), &authority.address(&file))
            && is(certificate.crl_uri(), &authority.address(&authority.list_name()))
            && is(certificate.ca_issuer(), authority.certificate.as_str())
            && certificate.authority_key_identifier() == Some(authority.public.key_identifier())
    }

    fn make_round(&mut self, due: &[(&'a Authority, &'a Attestation)]) -> Result<(), IssueError> {
        let mut tasks = Vec::new();
        for &(authority, attestation) in due {
            match self.task(authority, attestation) {
                Ok(Some(task)) => tasks.push(task),
                Ok(None) => self.fail(authority, &attestation.file_name(), &NO_KEY),
                Err(Problem::Made(error)) => self.fail(authority, &attestation.file_name(), &error),
                Err(Problem::Run(error)) => return Err(error),
            }
        }
        // What is asked for is written down first. Agents know contents that they consent to; of others they can say what they are.
        self.state.save()?;
        for task in &tasks {
            self.put(&task.attestation.encode())?;
        }
        for (task, made) in tasks.iter().zip(sign_all(&self.issuer, &tasks)) {
            let file = task.attestation.file_name();
            match made {
                Ok(bytes) => {
                    let digest = self.put(&bytes)?;
                    self.signed(task.authority, task.stamp.serial);
                    let kept = Kept { digest, until: task.stamp.until };
                    let issued = self.known().of(&task.authority.name);
                    issued.contents.insert(hex::encode(task.attestation.digest()));
                    issued.objects.insert(file, kept);
                    self.report.objects = self.report.objects.saturating_add(1);
                }
                Err(error) => {
                    let objection = error.to_string();
                    if blames_quota(&objection) {
                        self.full.insert(&task.authority.name);
                    }
                    self.unused(task.authority, task.stamp, &error);
                    self.doubt(task.key.name, &objection);
                    self.fail_again(task.authority, &file, &error);
                }
            }
        }
        Ok(self.state.save()?)
    }

    /// What is to be made, with a key and numbers that are noted. `None`: there is no key.
    fn task(&mut self, authority: &'a Authority, attestation: &'a Attestation) -> Result<Option<Task<'a>>, Problem> {
        self.wait(authority, &attestation.file_name(), self.recent())?;
        let purpose = hex::encode(attestation.digest());
        self.fits(authority, &purpose)?;
        let Some(key) = self.key(&purpose) else { return Ok(None) };
        let lasts = self.issuer.registry.terms.longest_object;
        let stamp = self.asked(authority, &attestation.file_name(), key.name, lasts)?;
        Ok(Some(Task { authority, attestation, key, stamp }))
    }

    /// Whether a member may have a content more: agents permit so many, and a key of the pool is not taken to hear that again.
    fn fits(&mut self, authority: &Authority, content: &str) -> Result<(), MakeError> {
        let most = self.issuer.registry.objects(authority);
        let is_full = self.full.contains(authority.name.as_str());
        let contents = &self.known().of(&authority.name).contents;
        if contents.contains(content) || (!is_full && contents.len() < most) {
            return Ok(());
        }
        let reason = format!(
            "{} has as many different objects as the registry's data permit: raise objects there, at every registry",
            authority.name
        );
        Err(Unsigned(reason).into())
    }
}

/// Has objects signed, some in one call; the files in the order of the tasks.
fn sign_all(issuer: &Issuer<'_>, tasks: &[Task<'_>]) -> Vec<Result<Vec<u8>, MakeError>> {
    let make = |hands: &dyn Hands, Task { authority, attestation, key, stamp }: &Task<'_>| {
        made::object(hands, authority, attestation, *key, *stamp)
    };
    let calls = tasks.chunks(issuer.most.max(1));
    calls.flat_map(|some| together(issuer.hands, some, make)).collect()
}
