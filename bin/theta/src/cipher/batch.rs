//! `theta decrypt` of several files.

use std::{
    collections::BTreeMap,
    io::{BufReader, Read},
    path::{Path, PathBuf},
};

use theta_payload::{self as payload, Header};

use super::{BUFFER, DecryptArgs, Sealed, name::key_names, not_a_ciphertext, open_failure, plaintext_name};
use crate::{
    connect::{Provenance, Session},
    exit::{Failure, Several},
    files::{self, Source, Target},
    interrupt::Interrupt,
    output::Output,
};

/// So many files are open at one time, and their headers are sent together.
const MOST_FILES: usize = 128;

/// A ciphertext whose payload key is not known yet.
struct Closed {
    name: PathBuf,
    header: bytes::Bytes,
    reader: BufReader<Box<dyn Read + Send>>,
    target: Target,
}

/// Decrypts each file into one of its own. One that fails fails alone.
pub(super) fn decrypt_all(args: &DecryptArgs, output: Output) -> Result<(), Failure> {
    if args.output.is_some() || args.payload_key.is_some() {
        return Err(Failure::Usage(
            "--output and --payload-key are for one file: give no more, or leave them out".to_owned(),
        ));
    }
    let session = args.client.open_with(&args.approvals)?;
    let interrupt = Interrupt::watch()?;
    let mut several = Several::new(args.files.len());
    for files in args.files.chunks(MOST_FILES) {
        let mut all = Vec::with_capacity(files.len());
        for file in files {
            match read(file) {
                Ok(closed) => all.push(closed),
                Err(failure) => several.note(file.display(), failure)?,
            }
        }
        let names = names(&all, args.key.as_deref(), &session)?;
        let mut by_key: BTreeMap<String, Vec<Closed>> = BTreeMap::new();
        for (closed, name) in all.into_iter().zip(names) {
            match name {
                Ok(key) => by_key.entry(key).or_default().push(closed),
                Err(failure) => several.note(closed.name.display(), failure)?,
            }
        }
        for (key, closed) in by_key {
            open_all(&session, &key, closed, (&mut several, interrupt), output)?;
        }
    }
    several.end()
}

/// A file with its header read.
fn read(file: &Path) -> Result<Closed, Failure> {
    if files::is_dash(file) {
        return Err(Failure::Usage("standard input is decrypted by itself: name nothing else".to_owned()));
    }
    let source = Source::open(file)?;
    let target = Target::choose(None, plaintext_name(file))?;
    target.check_input(&source)?;
    let mut reader = BufReader::with_capacity(BUFFER.min(64 << 10), source.reader);
    let header = payload::read_header(&mut reader).map_err(|error| open_failure(&error, file))?;
    Header::parse(&header).map_err(|error| not_a_ciphertext(&error, file))?;
    Ok(Closed { name: file.to_owned(), header: header.into(), reader, target })
}

/// The name of each file's key.
fn names(all: &[Closed], key: Option<&str>, session: &Session) -> Result<Vec<Result<String, Failure>>, Failure> {
    // It was parsed before.
    let headers = all.iter().map(parsed).collect::<Result<Vec<_>, _>>()?;
    Ok(key_names(key, session, &headers))
}

fn parsed(closed: &Closed) -> Result<Header<'_>, Failure> {
    Header::parse(&closed.header).map_err(|error| not_a_ciphertext(&error, &closed.name))
}

fn open_all(
    session: &Session,
    key: &str,
    all: Vec<Closed>,
    (several, interrupt): (&mut Several, Interrupt),
    output: Output,
) -> Result<(), Failure> {
    let headers: Vec<bytes::Bytes> = all.iter().map(|closed| closed.header.clone()).collect();
    let answers = session.block_on(session.client().decapsulate_all(key, &headers))?;
    for (closed, answer) in all.into_iter().zip(answers) {
        let Closed { name, header, reader, target } = closed;
        let opened = answer.map_err(Failure::from).and_then(|answer| {
            let provenance = Provenance::new(key, &answer);
            provenance.warn_of_culprits();
            let header = Header::parse(&header).map_err(|error| not_a_ciphertext(&error, &name))?;
            let sealed = Sealed { name: &name, header: &header, reader };
            sealed.open(&answer.result, Some(provenance), &target, interrupt, output)
        });
        if let Err(failure) = opened {
            several.note(name.display(), failure)?;
        }
    }
    Ok(())
}
