//! `theta encrypt`, `theta decrypt`, `theta decapsulate`.

mod batch;
mod name;

use std::{
    io::{BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

use clap::Args;
use serde::Serialize;
use theta_payload::{self as payload, Aead, Header, OpenError, PayloadKey};

use self::name::key_name;
use crate::{
    access::ApprovalFiles,
    connect::{ClientArgs, Provenance, Session},
    exit::Failure,
    files::{self, Source, Target},
    interrupt::Interrupt,
    keys::KeyArgs,
    output::Output,
    progress::Progress,
    text::TextOnly,
    units::Bytes,
};

/// The size of buffers around files: at most a chunk, so that payloads, which come in chunks or more, bypass them.
const BUFFER: usize = payload::CHUNK_LEN;

/// Options of `theta encrypt`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta encrypt letter.txt                          writes letter.txt.theta
  theta encrypt letter.txt --key files-bls --label 'for the archive'
  tar c photos | theta encrypt - > photos.theta     any size, in constant memory
  theta encrypt letter.txt --public-key files.pub   on a machine that knows only the public key")]
pub(crate) struct EncryptArgs {
    /// What to encrypt; - for standard input
    file: PathBuf,
    /// Where to write; - for standard output [default: FILE.theta, or standard output for standard input]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    key: KeyArgs,
    /// Public context, bound to the ciphertext; the nodes see it
    #[arg(long, value_name = "TEXT", default_value = "")]
    label: String,
    /// How the contents are sealed: chacha20-poly1305 or aes-256-gcm
    #[arg(long, value_name = "AEAD", default_value = "chacha20-poly1305")]
    aead: Aead,
}

/// Options of `theta decrypt`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta decrypt letter.txt.theta                 writes letter.txt
  theta decrypt *.theta                          each into a file of its own; hundreds of files take one call to each node
  theta decrypt photos.theta -o - | tar x
  theta decrypt letter.txt.theta --payload-key letter.key -o -

The contents stay here: the nodes see the header, a few hundred bytes, and return the key that opens the rest. \
A file is written complete or not at all; a pipe gets what has been authenticated, so heed the exit code.")]
pub(crate) struct DecryptArgs {
    /// What to decrypt; - for standard input
    #[arg(id = "file", required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where to write; - for standard output [default: FILE without .theta, else FILE.decrypted, or standard output for standard input]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Name of the key [default: the one that the file names]
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// Open with a payload key from theta decapsulate, without any node
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    payload_key: Option<PathBuf>,
    #[command(flatten)]
    approvals: ApprovalFiles,
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `theta decapsulate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta decapsulate letter.txt.theta                  prints the key in hexadecimal: it is a secret
  theta decapsulate letter.txt.theta -o letter.key    writes its 32 bytes, readable by you alone")]
pub(crate) struct DecapsulateArgs {
    /// An encrypted file, of which only the header is read; - for standard input
    file: PathBuf,
    /// Where to write the 32 bytes of the payload key [default: print it in hexadecimal]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// FILE is a header and nothing else: complain if more follows
    #[arg(long)]
    header_only: bool,
    /// Name of the key [default: the one that the file names]
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    #[command(flatten)]
    approvals: ApprovalFiles,
    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Serialize)]
struct Encrypted {
    key: String,
    aead: String,
    output: PathBuf,
    bytes: u64,
    header_bytes: usize,
}

#[derive(Serialize)]
struct Decrypted<'a> {
    output: PathBuf,
    bytes: u64,
    label: &'a str,
    #[serde(flatten)]
    provenance: Option<Provenance>,
}

#[derive(Serialize)]
struct Decapsulated {
    payload_key: Option<String>,
    output: Option<PathBuf>,
    #[serde(flatten)]
    provenance: Provenance,
}

/// `theta encrypt`.
pub(crate) fn encrypt(args: &EncryptArgs, output: Output) -> Result<(), Failure> {
    let key = args.key.choose_to_encrypt()?;
    let source = Source::open(&args.file)?;
    let target = Target::choose(args.output.as_deref(), files::with_suffix(&args.file, "theta"))?;
    target.check_json(output.json())?;
    target.check_input(&source)?;
    target.check_terminal("a ciphertext")?;

    let interrupt = Interrupt::watch()?;
    let mut progress = Progress::new("encrypting", source.length);
    let mut draft = target.draft(false)?;
    let mut reader = BufReader::with_capacity(BUFFER, interrupt.guard(source.reader));
    let (bytes, header_bytes) = {
        let mut writer = BufWriter::with_capacity(BUFFER, draft.file());
        let mut rng = crate::random::generator()?;
        let label = args.label.as_bytes();
        let mut report = |done| progress.reached(done);
        let sealed =
            payload::encrypt_stream(&key.public, label, args.aead, &mut reader, &mut writer, &mut report, &mut rng);
        let bytes = sealed.map_err(|error| encrypt_failure(error, interrupt, &source.name, &target))?;
        writer.flush().map_err(|error| Failure::writing(&target.name(), &error))?;
        let end = writer.get_mut().metadata().map_err(|error| Failure::writing(&target.name(), &error))?.len();
        let header = end.saturating_sub(payload::sealed_len(bytes));
        (bytes, usize::try_from(header).unwrap_or(usize::MAX))
    };
    drop(progress);
    draft.commit()?;
    let report =
        Encrypted { key: key.asked(), aead: args.aead.to_string(), output: target.name(), bytes, header_bytes };
    let (from, to) = (source.name.display(), report.output.display());
    output.remark(&report, &format!("encrypted {from} ({}) to the key {}: {to}", Bytes(bytes), report.key))
}

/// `theta decrypt`.
pub(crate) fn decrypt(args: &DecryptArgs, output: Output) -> Result<(), Failure> {
    let [file] = args.files.as_slice() else { return batch::decrypt_all(args, output) };
    let source = Source::open(file)?;
    let target = Target::choose(args.output.as_deref(), plaintext_name(file))?;
    target.check_json(output.json())?;
    target.check_input(&source)?;
    let mut reader = BufReader::with_capacity(BUFFER, source.reader);
    let header_bytes = payload::read_header(&mut reader).map_err(|error| open_failure(&error, &source.name))?;
    let header = Header::parse(&header_bytes).map_err(|error| not_a_ciphertext(&error, &source.name))?;

    let (key, provenance) = match &args.payload_key {
        Some(path) => (read_payload_key(path)?, None),
        None => {
            let session = args.client.open_with(&args.approvals)?;
            let name = key_name(args.key.as_deref(), &session, &header)?;
            let (key, provenance) = ask_payload_key(&session, &name, &header_bytes)?;
            (key, Some(provenance))
        }
    };

    let interrupt = Interrupt::watch()?;
    let sealed = Sealed { name: &source.name, header: &header, reader };
    sealed.open(&key, provenance, &target, interrupt, output)
}

/// A ciphertext whose header has been read.
struct Sealed<'a, R> {
    name: &'a Path,
    header: &'a Header<'a>,
    /// The rest.
    reader: R,
}

impl<R: Read> Sealed<'_, R> {
    /// Opens it with its key, and says so.
    fn open(
        self,
        key: &PayloadKey,
        provenance: Option<Provenance>,
        target: &Target,
        interrupt: Interrupt,
        output: Output,
    ) -> Result<(), Failure> {
        let Self { name, header, reader } = self;
        let mut progress = Progress::new("decrypting", Some(header.payload().plaintext_len()));
        let opened = open_into(key, header, reader, target, interrupt, &mut |done| progress.reached(done));
        drop(progress);
        let bytes = opened.map_err(|failure| match (interrupt.happened(), failure) {
            (Some(interrupted), _) => interrupted,
            (None, failure) => failure.in_words(name),
        })?;
        let label = String::from_utf8_lossy(header.label().bytes());
        let report = Decrypted { output: target.name(), bytes, label: &label, provenance };
        let by = report.provenance.as_ref().map_or_else(|| "without a node".to_owned(), Provenance::summary);
        let (from, to) = (name.display(), report.output.display());
        output.remark(&report, &format!("decrypted {from} to {to} ({}) {by}", Bytes(bytes)))
    }
}

/// `theta decapsulate`.
pub(crate) fn decapsulate(args: &DecapsulateArgs, output: Output) -> Result<(), Failure> {
    let mut source = Source::open(&args.file)?;
    let header_bytes = payload::read_header(&mut source.reader).map_err(|error| open_failure(&error, &source.name))?;
    let header = Header::parse(&header_bytes).map_err(|error| not_a_ciphertext(&error, &source.name))?;
    if args.header_only {
        let more = source.reader.read(&mut [0]).map_err(|error| Failure::reading(&source.name, &error))?;
        if more != 0 {
            let name = source.name.display();
            return Err(Failure::Usage(format!(
                "{name} has bytes after its header of {} bytes: give the header alone, or leave out --header-only",
                header_bytes.len()
            )));
        }
    }
    let target = args.output.as_deref().map(|path| Target::choose(Some(path), None)).transpose()?;
    if let Some(target) = &target {
        target.check_json(output.json())?;
        target.check_input(&source)?;
        target.check_terminal("a payload key")?;
    }
    let session = args.client.open_with(&args.approvals)?;
    let name = key_name(args.key.as_deref(), &session, &header)?;
    let (key, provenance) = ask_payload_key(&session, &name, &header_bytes)?;
    let digits = zeroize::Zeroizing::new(hex::encode(key.secret().expose()));
    if let Some(target) = target {
        target.write(key.secret().expose(), true)?;
        let summary = format!("wrote the payload key to {} {}", target.name().display(), provenance.summary());
        let report = Decapsulated { payload_key: None, output: Some(target.name()), provenance };
        return output.remark(&report, &summary);
    }
    let report = Decapsulated { payload_key: Some(digits.to_string()), output: None, provenance };
    output.result(&report, |out| writeln!(out, "{}", *digits))
}

/// Why a payload was not opened or not shown.
enum Unopened {
    Payload(OpenError),
    /// The plaintext is not text that a terminal can show.
    Unshowable,
    Other(Failure),
}

impl Unopened {
    fn in_words(self, source: &Path) -> Failure {
        match self {
            Self::Payload(error) => open_failure(&error, source),
            Self::Unshowable => Failure::Usage(format!(
                "{} holds something other than text, and standard output is a terminal: name a file with -o, or pipe it",
                source.display()
            )),
            Self::Other(failure) => failure,
        }
    }
}

fn open_into(
    key: &PayloadKey,
    header: &Header<'_>,
    reader: impl Read,
    target: &Target,
    interrupt: Interrupt,
    progress: &mut dyn FnMut(u64),
) -> Result<u64, Unopened> {
    let mut reader = interrupt.guard(reader);
    let write_failed = |error: &std::io::Error| Unopened::Other(Failure::writing(&target.name(), error));
    if let Some(stream) = target.stream().map_err(Unopened::Other)? {
        if target.is_terminal() {
            return show(key, header, &mut reader, stream, progress);
        }
        let mut writer = BufWriter::with_capacity(BUFFER, stream);
        let bytes = payload::open_stream(key, header, &mut reader, &mut writer, progress).map_err(Unopened::Payload)?;
        writer.flush().map_err(|error| write_failed(&error))?;
        return Ok(bytes);
    }
    let mut draft = target.draft(true).map_err(Unopened::Other)?;
    let mut writer = BufWriter::with_capacity(BUFFER, draft.file());
    let bytes = payload::open_stream(key, header, &mut reader, &mut writer, progress).map_err(Unopened::Payload)?;
    writer.flush().map_err(|error| write_failed(&error))?;
    drop(writer);
    draft.commit().map_err(Unopened::Other)?;
    Ok(bytes)
}

/// Shows a plaintext on a terminal, as far as it is text.
fn show(
    key: &PayloadKey,
    header: &Header<'_>,
    reader: &mut dyn Read,
    terminal: Box<dyn Write>,
    progress: &mut dyn FnMut(u64),
) -> Result<u64, Unopened> {
    let mut text = TextOnly::new(terminal);
    let opened = payload::open_stream(key, header, reader, &mut text, progress);
    match opened {
        _ if text.refused() => Err(Unopened::Unshowable),
        Ok(_) if text.finish().is_err() => Err(Unopened::Unshowable),
        opened => opened.map_err(Unopened::Payload),
    }
}

/// FILE for FILE.theta, otherwise FILE.decrypted.
fn plaintext_name(file: &Path) -> Option<PathBuf> {
    if files::is_dash(file) {
        return None;
    }
    match file.extension() {
        Some(extension) if extension == "theta" => Some(file.with_extension("")),
        _ => files::with_suffix(file, "decrypted"),
    }
}

fn ask_payload_key(session: &Session, name: &str, header: &[u8]) -> Result<(PayloadKey, Provenance), Failure> {
    let answer = session.block_on(session.client().decapsulate(name, header.to_vec().into()))?;
    let provenance = Provenance::new(name, &answer);
    provenance.warn_of_culprits();
    Ok((answer.result, provenance))
}

fn read_payload_key(path: &Path) -> Result<PayloadKey, Failure> {
    let bytes = zeroize::Zeroizing::new(Source::open_private(path)?.read_all(1024, "a payload key has 32 bytes")?);
    let from_hex = || {
        let digits = std::str::from_utf8(&bytes).ok()?.trim();
        PayloadKey::from_bytes(&zeroize::Zeroizing::new(hex::decode(digits).ok()?)).ok()
    };
    PayloadKey::from_bytes(&bytes).ok().or_else(from_hex).ok_or_else(|| {
        Failure::Usage(format!("{} is not a payload key: it is 32 bytes, or 64 hexadecimal digits", path.display()))
    })
}

fn encrypt_failure(error: payload::EncryptError, interrupt: Interrupt, source: &Path, target: &Target) -> Failure {
    if let Some(interrupted) = interrupt.happened() {
        return interrupted;
    }
    match error {
        payload::EncryptError::Request(error) => Failure::Usage(error.to_string()),
        payload::EncryptError::Io(error) => {
            let (from, to) = (source.display(), target.name());
            Failure::Failed(format!("encrypting {from} to {}: {}", to.display(), crate::exit::reason(&error)))
        }
    }
}

fn open_failure(error: &OpenError, source: &Path) -> Failure {
    match error {
        OpenError::Header(error) => not_a_ciphertext(error, source),
        OpenError::Io(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        OpenError::Io(error) => {
            Failure::Failed(format!("decrypting {}: {}", source.display(), crate::exit::reason(error)))
        }
        error => Failure::Failed(format!("{}: {error}", source.display())),
    }
}

fn not_a_ciphertext(error: &theta_schemes::RequestError, source: &Path) -> Failure {
    Failure::Usage(format!("{}: {error}", source.display()))
}
