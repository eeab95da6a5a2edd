//! `theta pkcs11 check`: a host of the module, by a library that knows nothing of ours.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::Args;
use cryptoki::{
    context::{CInitializeArgs, CInitializeFlags, Pkcs11},
    error::{Error, RvError},
    mechanism::{
        Mechanism, MechanismType,
        eddsa::{EddsaParams, EddsaSignatureScheme},
        rsa::{PkcsMgfType, PkcsPssParams},
    },
    object::{Attribute, AttributeType, ObjectClass, ObjectHandle},
    session::{Session, UserType},
    slot::Slot,
};
use serde::Serialize;
use theta_keypool::Config;
use theta_look_ahead::is_served;
use theta_names::WallTime;

use super::find_module;
use crate::{exit::Failure, files::Source, output::Output};

/// What a host does first: the module reads its configuration then.
const BEGIN: &str = "begin";
/// How long whoever looks ahead may take to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// What is signed: never the same twice, since nodes remember for a while what they have signed.
fn sentence() -> String {
    format!("theta pkcs11 check, {} ns after the beginning of 1970", WallTime::now().duration().as_nanos())
}

/// Options of `theta pkcs11 check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  THETA_CLIENT=ann.client theta pkcs11 check                  which tokens and keys does a host see?
  THETA_PKCS11_CONFIG=pkcs11.toml theta pkcs11 check --key release    ... and does this key sign?

It loads the module as hosts do, and the module reads the same variables and files as for them (theta pkcs11 config). Without --key or \
--all nothing is signed. A key that is named signs a sentence that begins with \"theta pkcs11 check\" and stands in the nodes' audit logs then.")]
pub(crate) struct CheckArgs {
    /// The module [default: beside this program, or in ../lib]
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
    /// Sign with this key
    #[arg(long = "key", value_name = "NAME")]
    keys: Vec<String>,
    /// Sign with every key
    #[arg(long, conflicts_with = "keys")]
    all: bool,
    /// File of the PIN: a client's token, or the passphrase of its file
    #[arg(long, value_name = "FILE")]
    pin_file: Option<PathBuf>,
}

#[derive(Serialize)]
struct View {
    module: PathBuf,
    tokens: Vec<TokenView>,
    /// The sockets where the module asks what will be signed next.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    look_ahead: Vec<ServiceView>,
}

#[derive(Serialize)]
struct ServiceView {
    socket: PathBuf,
    /// Why nobody answers there.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Serialize)]
struct TokenView {
    label: String,
    serial: String,
    keys: Vec<KeyView>,
}

#[derive(Serialize)]
struct KeyView {
    label: String,
    mechanisms: Vec<String>,
    /// How long a signature took, in milliseconds, if one was made and verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    signed_ms: Option<f64>,
}

/// `theta pkcs11 check`.
pub(super) fn check(args: &CheckArgs, output: Output) -> Result<(), Failure> {
    let module = find_module(args.module.as_deref())?;
    let context = Pkcs11::new(&module)
        .map_err(|error| Failure::Failed(format!("{} is no module that can be loaded: {error}", module.display())))?;
    context.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)).map_err(|error| wrong(BEGIN, &error))?;
    let slots = context.get_slots_with_token().map_err(|error| wrong("list the tokens", &error))?;
    if slots.is_empty() {
        return Err(Failure::Failed(
            "the module shows no token: it says above which client file it cannot read".to_owned(),
        ));
    }
    let tokens = slots.into_iter().map(|slot| token(&context, slot, args)).collect::<Result<Vec<_>, _>>()?;
    for wanted in &args.keys {
        if !tokens.iter().flat_map(|token| &token.keys).any(|key| key.label == *wanted) {
            return Err(Failure::Usage(format!(
                "no token has a key {wanted} that signs: theta pkcs11 check without --key lists those that there are"
            )));
        }
    }
    let view = View { module, tokens, look_ahead: services() };
    output.result(&view, |out| {
        writeln!(out, "{} can be loaded", view.module.display())?;
        for TokenView { label, serial, keys } in &view.tokens {
            writeln!(out, "token {label} (serial {serial}) has {} keys that sign", keys.len())?;
            for KeyView { label, mechanisms, signed_ms } in keys {
                let mechanisms = mechanisms.join(", ");
                match signed_ms {
                    None => writeln!(out, "  {label}: {mechanisms}")?,
                    Some(took) => writeln!(out, "  {label}: {mechanisms}; signed and verified in {took:.1} ms")?,
                }
            }
        }
        for ServiceView { socket, problem } in &view.look_ahead {
            match problem {
                None => writeln!(out, "look-ahead: somebody answers at {}", socket.display())?,
                Some(problem) => writeln!(out, "look-ahead: {problem}; signatures are made when they are asked for")?,
            }
        }
        Ok(())
    })
}

/// Who says what will be signed next. The module has read the same configuration, and needs none of them.
fn services() -> Vec<ServiceView> {
    let tokens = Config::load(false).map(|config| config.tokens).unwrap_or_default();
    let sockets = tokens.into_iter().filter_map(|token| token.look_ahead);
    let view = |socket: PathBuf| {
        let problem = is_served(&socket, ANSWER).err().map(|error| error.to_string());
        ServiceView { socket, problem }
    };
    sockets.map(view).collect()
}

fn token(context: &Pkcs11, slot: Slot, args: &CheckArgs) -> Result<TokenView, Failure> {
    let info = context.get_token_info(slot).map_err(|error| wrong("look at a token", &error))?;
    let session = context.open_ro_session(slot).map_err(|error| wrong("open a session", &error))?;
    match &args.pin_file {
        Some(file) => log_in(&session, file)?,
        None if info.login_required() => {
            return Err(Failure::Usage(format!(
                "the token {} wants a PIN: name with --pin-file the file of what its configuration says (pin = \"token\", a client's token; \
                 pin = \"passphrase\", what locks the client file)",
                info.label()
            )));
        }
        None => {}
    }
    let private = session.find_objects(&[Attribute::Class(ObjectClass::PRIVATE_KEY)]);
    let private = private.map_err(|error| wrong("find keys", &error))?;
    let keys = private.into_iter().map(|key| look_at(&session, key, args)).collect::<Result<Vec<_>, _>>()?;
    Ok(TokenView { label: info.label().to_owned(), serial: info.serial_number().to_owned(), keys })
}

fn log_in(session: &Session, file: &Path) -> Result<(), Failure> {
    let bytes = Source::open_private(file)?.read_secret(1024)?;
    let pin =
        std::str::from_utf8(bytes.expose()).map_err(|_| Failure::Usage(format!("{} is no text", file.display())))?;
    let pin: Box<str> = pin.trim_end().into();
    session.login(UserType::User, Some(&pin.into())).map_err(|error| wrong("log in", &error))
}

fn look_at(session: &Session, key: ObjectHandle, args: &CheckArgs) -> Result<KeyView, Failure> {
    let wanted = [AttributeType::Label, AttributeType::Id, AttributeType::AllowedMechanisms];
    let attributes = session.get_attributes(key, &wanted).map_err(|error| wrong("read a key's attributes", &error))?;
    let (mut label, mut id, mut mechanisms) = (String::new(), Vec::new(), Vec::new());
    for attribute in attributes {
        match attribute {
            Attribute::Label(bytes) => label = String::from_utf8_lossy(&bytes).into_owned(),
            Attribute::Id(bytes) => id = bytes,
            Attribute::AllowedMechanisms(allowed) => mechanisms = allowed,
            _ => {}
        }
    }
    let signs = args.all || args.keys.contains(&label);
    let signed_ms = if signs { Some(sign(session, key, (&label, id), &mechanisms)?) } else { None };
    Ok(KeyView { label, mechanisms: mechanisms.iter().map(ToString::to_string).collect(), signed_ms })
}

/// Signs and verifies; how long the signature took, in milliseconds.
fn sign(
    session: &Session,
    key: ObjectHandle,
    (label, id): (&str, Vec<u8>),
    allowed: &[MechanismType],
) -> Result<f64, Failure> {
    let mechanism = allowed.iter().find_map(|kind| whole_message(*kind));
    let mechanism =
        mechanism.ok_or_else(|| Failure::internal(format!("{label} has no mechanism that takes a message")))?;
    let sentence = sentence();
    let began = Instant::now();
    let signature = session
        .sign(&mechanism, key, sentence.as_bytes())
        .map_err(|error| wrong(&format!("sign with {label}"), &error))?;
    let took = began.elapsed();
    let public = session.find_objects(&[Attribute::Class(ObjectClass::PUBLIC_KEY), Attribute::Id(id)]);
    let public = public.map_err(|error| wrong(&format!("find the public key of {label}"), &error))?;
    let public = public.first().ok_or_else(|| Failure::internal(format!("{label} has no public key")))?;
    let verified = session.verify(&mechanism, *public, sentence.as_bytes(), &signature);
    verified.map_err(|error| wrong(&format!("verify a signature of {label}"), &error))?;
    Ok(took.as_secs_f64() * 1e3)
}

/// The mechanism of this type, if it takes whole messages.
fn whole_message(kind: MechanismType) -> Option<Mechanism<'static>> {
    match kind {
        MechanismType::EDDSA => Some(Mechanism::Eddsa(EddsaParams::new(EddsaSignatureScheme::Pure))),
        MechanismType::ECDSA_SHA256 => Some(Mechanism::EcdsaSha256),
        MechanismType::SHA256_RSA_PKCS => Some(Mechanism::Sha256RsaPkcs),
        MechanismType::SHA512_RSA_PKCS => Some(Mechanism::Sha512RsaPkcs),
        MechanismType::SHA256_RSA_PKCS_PSS => Some(Mechanism::Sha256RsaPkcsPss(PkcsPssParams {
            hash_alg: MechanismType::SHA256,
            mgf: PkcsMgfType::MGF1_SHA256,
            s_len: 32.into(),
        })),
        _ => None,
    }
}

/// What a host cannot do, and what would be right.
fn wrong(what: &str, error: &Error) -> Failure {
    const LOG: &str = "the module's log says why (standard error, if its configuration does not say otherwise)";
    let Error::Pkcs11(value, _) = error else { return Failure::Failed(format!("cannot {what}: {error}")) };
    match value {
        RvError::GeneralError if what == BEGIN => {
            Failure::Usage(format!("cannot {what}: the module has no good configuration; {LOG}"))
        }
        RvError::GeneralError => Failure::Failed(format!("cannot {what}: the module or the system fails; {LOG}")),
        RvError::DeviceError => Failure::NoAnswer(format!("cannot {what}: too few nodes answer; {LOG}")),
        RvError::FunctionRejected => {
            Failure::Failed(format!("cannot {what}: the policies of the nodes refuse it; {LOG}"))
        }
        RvError::PinIncorrect => Failure::Usage(format!(
            "cannot {what}: the PIN is neither a token that the nodes know (theta token new; its line belongs into policy.toml: theta token line) \
             nor, where the configuration says pin = \"passphrase\", what unlocks the client file; {LOG}"
        )),
        value => Failure::Failed(format!("cannot {what}: {value:?}; {LOG}")),
    }
}

#[cfg(test)]
mod tests {
    use cryptoki::context::Function;

    use super::*;

    #[test]
    fn reasons_are_those_of_what_was_tried() {
        let told = |what: &str, value| wrong(what, &Error::Pkcs11(value, Function::Sign)).to_string();
        assert!(told(BEGIN, RvError::GeneralError).contains("no good configuration"));
        assert!(!told("sign with www", RvError::GeneralError).contains("configuration;"));
        let pin = told("log in", RvError::PinIncorrect);
        assert!(pin.contains("passphrase") && pin.contains("token"), "{pin}");
    }
}
