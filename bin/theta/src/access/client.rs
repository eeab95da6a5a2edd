//! `theta client`: files for clients.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use serde::Serialize;
use theta_client::{Checkpoint, ClientFile, changed_since, check_group};
use theta_ledger::founding::{Fingerprint, Founding};
use theta_network::group::GroupFile;
use theta_schemes::groups::Secret;
use theta_statements::Name;

use super::credentials::{Credentials, REQUEST_KEY};
use crate::{
    connect,
    exit::Failure,
    files::{Source, Target, read_text, write_new},
    founding::{FOUNDING, from_ledger, group_text, is_export, is_founding, read_founding},
    keys::NamedKey,
    output::{self, Output},
};

/// Options of `theta client new`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta client new --name gateway --group theta-group/group.toml
  theta client new --name ann --group alpha/group.toml --fingerprint 'XEVM 0ACS QDGE ...'
  theta client new --name ann --group payments.ledger --fingerprint 'XEVM 0ACS QDGE ...'      from theta ledger export
  theta sign letter.txt --client ann.client

It writes one file, NAME.client, with all that a client needs in any language: the group's nodes with their addresses and the keys \
that they are recognised by, the founding with its fingerprint, the client's certificate and private key, and a key to sign requests \
with. It holds secrets: move it like a private key. Then it prints two pieces: one for policy.toml at every node, without which the \
client may do nothing, and one for group.toml, for those who keep all clients there.

The group file comes from somebody. Where its members founded the group, --fingerprint makes sure that it is the group that they said \
to each other; without it the fingerprint is printed, to be compared. A founding has the addresses of the first day. An exported ledger has those of \
its last entry, each of which is checked: the newer it is, the more of them answer; what was decided since the client learns from any node. It also has \
the keys by which the members of then are recognised, whatever became of the founders' machines, and the client believes no other history: who has the old keys \
of machines that were replaced could write one.")]
pub(crate) struct NewArgs {
    /// What the policy calls the client
    #[arg(long, value_name = "NAME")]
    name: Name,
    /// The file to make [default: NAME.client]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The group: group.toml, with the group.founding that lies beside it; its ledger, as theta ledger export writes it; or a founding
    #[arg(long, value_name = "FILE")]
    group: PathBuf,
    /// The group's fingerprint, as somebody told it whom you trust
    #[arg(long, value_name = "FINGERPRINT")]
    fingerprint: Option<Fingerprint>,
}

/// Options of `theta client convert`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  theta client convert theta-group/client -o gateway.client

The directory stays as it is. Both are the same client.")]
pub(crate) struct ConvertArgs {
    /// A client directory
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// What the policy calls the client
    #[arg(long, value_name = "NAME", default_value = "client")]
    name: Name,
    /// The file to make
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Serialize)]
struct Made<'a> {
    name: &'a Name,
    file: PathBuf,
    certificate: String,
    signing_key: String,
    fingerprint: Option<String>,
    /// The entry of the ledger up to which the file was checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<u64>,
    policy: String,
    group: String,
}

#[derive(Serialize)]
struct Converted {
    file: PathBuf,
}

/// A group as somebody gave it.
struct Given {
    /// Without its clients.
    group: GroupFile,
    founding: Option<Founding>,
    /// How far its ledger was checked, if it came as one.
    checkpoint: Option<Checkpoint>,
}

/// Reads a group as somebody gave it.
fn read_group(path: &Path, new: Option<&Name>, told: Option<&Fingerprint>) -> Result<Given, Failure> {
    let usage = |error: &dyn core::fmt::Display| Failure::Usage(error.to_string());
    let mut checkpoint = None;
    let (group, founding) = if is_export(path)? {
        let (text, founding, checked) = from_ledger(path, told)?;
        checkpoint = checked;
        (GroupFile::parse(&text, path).map_err(|error| usage(&error))?, Some(founding))
    } else if is_founding(path)? {
        let founding = read_founding(path)?;
        let text = group_text(&founding, Vec::new())?;
        (GroupFile::parse(&text, path).map_err(|error| usage(&error))?, Some(founding))
    } else {
        let file = GroupFile::load(path).map_err(|error| usage(&error))?;
        if let Some(client) = file.clients().iter().find(|client| new.is_some_and(|new| client.name == new.as_str())) {
            let (path, name) = (path.display(), &client.name);
            return Err(Failure::Usage(format!("{path} has a client {name} already: choose another --name")));
        }
        let beside = path.with_file_name(FOUNDING);
        let founding = match file.founding() {
            Some(_) => Some(read_founding(path)?),
            None if beside.is_file() => Some(read_founding(&beside)?),
            None => None,
        };
        let group = file.without_founding().with_clients(Vec::new()).map_err(|error| usage(&error))?;
        let group = match &founding {
            Some(founding) => group.with_founding(founding.to_text()),
            None => group,
        };
        (group, founding)
    };
    if let Some(founding) = &founding {
        check_group(founding, &group)
            .map_err(|reason| Failure::Failed(format!("{} and its founding do not fit: {reason}", path.display())))?;
        let changed: Vec<u16> = changed_since(founding, &group).iter().map(|node| node.get()).collect();
        if !changed.is_empty() && group.members_at().is_none() {
            let (file, nodes) = (path.display(), connect::nodes(&changed));
            output::note(format_args!(
                "{file} has {nodes} otherwise than the group was founded; the client believes what the group's ledger says of them"
            ));
        }
    }
    match (told, founding.as_ref().map(Founding::fingerprint)) {
        (None, _) => {}
        (Some(told), Some(found)) if *told == found => {}
        (Some(_), Some(found)) => {
            return Err(Failure::Failed(format!(
                "{} is of another group: its fingerprint is {found}, and not the one given; nothing was written",
                path.display()
            )));
        }
        (Some(_), None) => {
            return Err(Failure::Usage(format!(
                "{} has no fingerprint, since it has no founding, and no {FOUNDING} lies beside it: ask for that, too",
                path.display()
            )));
        }
    }
    Ok(Given { group, founding, checkpoint })
}

/// `theta client new`.
pub(super) fn new(args: &NewArgs, output: Output) -> Result<(), Failure> {
    let name = args.name.as_str();
    let target = Target::choose(args.output.as_deref(), Some(PathBuf::from(format!("{name}.client"))))?;
    let Given { group, founding, checkpoint } = read_group(&args.group, Some(&args.name), args.fingerprint.as_ref())?;
    let credentials = Credentials::generate(name)?;
    let client = credentials.group_client(name);
    let fingerprint = founding.as_ref().map(|founding| founding.fingerprint().to_string());
    let file = ClientFile {
        name: args.name.clone(),
        group,
        founding,
        checkpoint,
        identity: Some((
            credentials.identity.certificate_pem.clone(),
            Secret::new(String::clone(&credentials.identity.key_pem)),
        )),
        request_key: Some(credentials.request_key.to_pem()),
        public_keys: Vec::new(),
    };
    target.write(file.to_text().expose().as_bytes(), true)?;
    let made = Made {
        name: &args.name,
        certificate: client.certificate.to_string(),
        signing_key: credentials.request_key.verifying_key().to_string(),
        policy: credentials.policy_lines(name),
        group: format!("[[client]]\nname = {name:?}\ncertificate = \"{}\"\n", client.certificate),
        fingerprint,
        checkpoint: checkpoint.map(|checkpoint| checkpoint.height),
        file: target.name(),
    };
    output.result(&made, |out| {
        writeln!(out, "made the client file {}: it holds secrets", made.file.display())?;
        if let Some(height) = made.checkpoint {
            writeln!(out, "it takes no history of the group in which entry {height} is another than in {}", args.group.display())?;
        }
        if let (Some(fingerprint), None) = (&made.fingerprint, &args.fingerprint) {
            writeln!(out, "\nIts group has this fingerprint; compare it with what its members said to each other:\n  {fingerprint}")?;
        }
        writeln!(out, "\nFor policy.toml, at every node, with a [[rule]] that allows {name} something:\n")?;
        write!(out, "{}", made.policy)?;
        writeln!(out, "\nFor group.toml, for those who keep all clients there:\n")?;
        write!(out, "{}", made.group)
    })
}

/// `theta client convert`.
pub(super) fn convert(args: &ConvertArgs, output: Output) -> Result<(), Failure> {
    let dir = &args.dir;
    let Given { group, founding, checkpoint } = read_group(&dir.join("group.toml"), None, None)?;
    let secret = |name: &str| -> Result<Option<Secret<String>>, Failure> {
        let path = dir.join(name);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = Source::open_private(&path)?.read_secret(64 << 10)?;
        let text = std::str::from_utf8(bytes.expose());
        let text = text.map_err(|_| Failure::Usage(format!("{} is not a text file", path.display())))?;
        Ok(Some(Secret::new(text.to_owned())))
    };
    let identity = match secret("client.key")? {
        None => None,
        Some(key) => Some((read_text(&dir.join("client.crt"))?, key)),
    };
    let mut public_keys = Vec::new();
    for entry in fs::read_dir(dir.join("keys")).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "pub") {
            let key = NamedKey::read(&entry.path())?;
            public_keys.push((key.name, key.public));
        }
    }
    public_keys.sort_by(|(one, _), (other, _)| one.cmp(other));
    let request_key = secret(REQUEST_KEY)?;
    let file = ClientFile { name: args.name.clone(), group, founding, checkpoint, identity, request_key, public_keys };
    write_new(&args.output, file.to_text().expose().as_bytes(), true)?;
    // What was written is what will be read.
    ClientFile::load(&args.output)?;
    let converted = Converted { file: args.output.clone() };
    output
        .result(&converted, |out| writeln!(out, "made the client file {}: it holds secrets", converted.file.display()))
}
