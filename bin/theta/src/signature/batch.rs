//! `theta sign` of several files.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use theta_schemes::{MessageDigest, Purpose};

use super::{
    SignArgs, Signed,
    form::{self, Form},
    longest,
};
use crate::{
    connect::{Provenance, Session},
    exit::{Failure, Several},
    files::{self, Source, Target},
    output::Output,
};

/// So many bytes of messages are read before they are sent.
const MOST_BYTES: usize = 32 << 20;
/// So many messages are sent together: as many as nodes take in one call.
const MOST_MESSAGES: usize = 256;

/// Messages that are about to be signed.
#[derive(Default)]
struct Gathered {
    names: Vec<(PathBuf, Target)>,
    messages: Vec<Bytes>,
    bytes: usize,
}

/// Signs each file into one of its own. One that fails fails alone.
pub(super) fn sign_all(args: &SignArgs, output: Output) -> Result<(), Failure> {
    if args.output.is_some() || args.slot.is_some() || args.randomize || args.randomizer.is_some() {
        return Err(Failure::Usage(
            "--output, --slot, --randomize and --randomizer are for one file: give no more, or leave them out"
                .to_owned(),
        ));
    }
    let session = args.client.open_with(&args.approvals)?;
    let name = args.key.as_deref();
    let key = session.look_up(name, |keyring| keyring.choose(name, Purpose::Sign))?;
    form::check(args.format, key.public.suite())?;
    let asked = (key.asked(), args.format, key.public.message_digest());
    let limit = longest(session.client().options().max_message_bytes);
    let (mut several, mut gathered) = (Several::new(args.files.len()), Gathered::default());
    for file in &args.files {
        match read(file, limit) {
            Ok((target, message)) => {
                gathered.bytes = gathered.bytes.saturating_add(message.len());
                gathered.names.push((file.clone(), target));
                gathered.messages.push(message.into());
            }
            Err(failure) => several.note(file.display(), failure)?,
        }
        if gathered.bytes >= MOST_BYTES || gathered.messages.len() >= MOST_MESSAGES {
            sign(&session, &asked, core::mem::take(&mut gathered), &mut several, output)?;
        }
    }
    sign(&session, &asked, gathered, &mut several, output)?;
    several.end()
}

/// Where the signature of a file goes, and what is in it.
fn read(file: &Path, limit: usize) -> Result<(Target, Vec<u8>), Failure> {
    if files::is_dash(file) {
        return Err(Failure::Usage("standard input is signed by itself: name nothing else".to_owned()));
    }
    let source = Source::open(file)?;
    let target = Target::choose(None, files::with_suffix(file, "sig"))?;
    target.check_input(&source)?;
    Ok((target, source.read_all(limit, "sign it by itself")?))
}

fn sign(
    session: &Session,
    (key, format, digest): &(String, Option<Form>, Option<MessageDigest>),
    gathered: Gathered,
    several: &mut Several,
    output: Output,
) -> Result<(), Failure> {
    let Gathered { names, messages, .. } = gathered;
    if messages.is_empty() {
        return Ok(());
    }
    let client = session.client();
    let answers = session.block_on(client.sign_all(key, &messages))?;
    for (((file, target), message), answer) in names.into_iter().zip(&messages).zip(answers) {
        let delivered = answer.map_err(Failure::from).and_then(|answer| {
            let hashed = digest.map(|digest| digest.of(message));
            let recovery_id = hashed.and_then(|digest| client.recovery_id(key, &digest, &answer.result));
            let bytes = form::written(*format, &answer.result, recovery_id)?;
            let signature = hex::encode(&bytes);
            let provenance = Provenance::new(key, &answer);
            let output_name = target.name();
            let signed =
                Signed { signature, digest: None, randomized_key: None, recovery_id, output: output_name, provenance };
            signed.deliver(&file, &bytes, &target, output)
        });
        if let Err(failure) = delivered {
            several.note(file.display(), failure)?;
        }
    }
    Ok(())
}
