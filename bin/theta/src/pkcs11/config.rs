//! `theta pkcs11 config`: what the module and its hosts need.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;

use theta_keypool::{Prefix, Security, check_label, shown_label};

use super::find_module;
use crate::{connect::ClientDir, exit::Failure, files::toml_text, output::Output};

/// What the PIN of hosts is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Pin {
    /// Nothing: the client file is the credential
    #[default]
    None,
    /// A token, as theta token new writes it
    Token,
    /// What locks the private keys of the client file (theta client lock)
    Passphrase,
}

/// A program that signs with tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Host {
    /// pkcs11-tool
    Opensc,
    /// OpenSSL 3, by pkcs11-provider
    Openssl,
    /// ssh and ssh-keygen
    Ssh,
    /// Knot DNS
    Knot,
    /// BIND 9.20
    Bind,
    /// Krill, the certificate authority of the RPKI
    Krill,
    /// GnuTLS and everything else that asks p11-kit
    P11kit,
}

/// Options of `theta pkcs11 config`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta pkcs11 config --client ann.client > pkcs11.toml     the comments say where it belongs, and what hosts need
  theta pkcs11 config --client ann.client openssl           for one host alone
  theta pkcs11 config --client dns.client --pool zone knot  for a name server that makes its keys
  theta pkcs11 check                                        does it work?")]
pub(crate) struct ConfigArgs {
    /// The host [default: all]
    host: Option<Host>,
    /// The module [default: beside this program, or in ../lib]
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
    /// What hosts call the token [default: the group's name]
    #[arg(long, value_name = "NAME")]
    label: Option<String>,
    /// The pool of keys for programs that make their own: their names begin with it (theta pkcs11 pool)
    #[arg(long, value_name = "NAME")]
    pool: Option<Prefix>,
    /// What holders of the pool's keys of ECDSA may do that turn against them (theta pkcs11 pool --security)
    #[arg(long, value_name = "active|passive", requires = "pool", default_value_t = Security::Active)]
    security: Security,
    /// Where the module asks what a name server will have signed next: the socket of theta-dnssec agent --look-ahead
    #[arg(long, value_name = "SOCKET")]
    look_ahead: Option<PathBuf>,
    /// What the PIN of hosts is
    #[arg(long, value_name = "PIN", default_value = "none")]
    pin: Pin,
    #[command(flatten)]
    client: ClientDir,
}

#[derive(Serialize)]
struct HostView {
    host: Host,
    text: String,
}

#[derive(Serialize)]
struct View {
    module: PathBuf,
    token: String,
    config: String,
    hosts: Vec<HostView>,
}

/// `theta pkcs11 config`.
pub(super) fn print(args: &ConfigArgs, output: Output) -> Result<(), Failure> {
    let module = find_module(args.module.as_deref())?;
    let client = args.client.path();
    let group = theta_client::read_group(client)?;
    let client = client.canonicalize().map_err(|error| Failure::reading(client, &error))?;
    if let Some(label) = &args.label {
        check_label(label).map_err(Failure::Usage)?;
    }
    // As the module shows it to hosts.
    let token = shown_label(args.label.as_deref().unwrap_or(group.name())).to_owned();
    let hosts = Host::value_variants().iter().filter(|host| args.host.is_none_or(|wanted| wanted == **host));
    let hosts: Vec<_> =
        hosts.map(|host| HostView { host: *host, text: host.needs(&module, &token, args.pin) }).collect();
    let view = View { config: config(&client, args), module, token, hosts };
    output.result(&view, |out| {
        if args.host.is_none() {
            write!(out, "{}", view.config)?;
        }
        for HostView { text, .. } in &view.hosts {
            // Behind the configuration everything is a comment, so that all of it can be one file.
            for line in text.lines() {
                match (args.host, line) {
                    (Some(_), line) => writeln!(out, "{line}")?,
                    (None, "") => writeln!(out, "#")?,
                    (None, line) => writeln!(out, "# {line}")?,
                }
            }
        }
        Ok(())
    })
}

fn config(client: &Path, args: &ConfigArgs) -> String {
    let client = toml_text(&client.to_string_lossy());
    let label = args.label.as_ref().map(|label| format!("label = {}\n", toml_text(label))).unwrap_or_default();
    let pool = match &args.pool {
        Some(pool) => format!(
            "# Programs that make their own keys get those of the group that are called {pool}-SUITE-NUMBER (theta pkcs11 pool makes them).\n\
             # Which of them are whose is kept in this file: back it up.\npool = \"{pool}\"\nbindings = \"bindings.toml\"\n{}",
            security(args.security)
        ),
        None => "# For programs that make their own keys: theta pkcs11 config --pool NAME\n".to_owned(),
    };
    let look_ahead = args.look_ahead.as_ref().map(|socket| {
        format!(
            "# Who knows what a name server will have signed next (theta-dnssec agent --look-ahead): it is signed together.\nlook_ahead = {}\n",
            toml_text(&socket.to_string_lossy())
        )
    });
    let look_ahead = look_ahead.unwrap_or_default();
    let pin = match args.pin {
        Pin::None => "# The client file is the credential. Hosts that ask for a PIN take any.\npin = \"none\"\n",
        Pin::Passphrase => {
            "# Hosts give the passphrase of the client file (theta client lock) as their PIN.\npin = \"passphrase\"\n"
        }
        Pin::Token => "# Hosts give a token (theta token new) as their PIN.\npin = \"token\"\n",
    };
    format!(
        "# The configuration of libtheta_pkcs11.so. The module looks for it in $THETA_PKCS11_CONFIG, then in\n\
         # ~/.config/thetacrypt/pkcs11.toml, then in /etc/thetacrypt/pkcs11.toml.\n\
         # Where it has to say something: \"stderr\", \"off\" or a file.\nlog = \"stderr\"\n\n[[token]]\nclient = {client}\n{label}{pin}\
         # How long the nodes may take for a call, in milliseconds.\ntimeout_ms = 10000\n\
         # Whether C_DestroyObject destroys keys, if the nodes' policies allow it.\ndestroy = false\n{pool}{look_ahead}\n"
    )
}

/// Active security needs no word.
fn security(security: Security) -> String {
    match security {
        Security::Active => String::new(),
        Security::Passive => format!(
            "# The pool's keys of ECDSA are safe as long as every holder follows the protocol. One whose software was changed may learn a key, and\n\
             # nobody notices. Without this line programs are given keys with active security alone, which have no such weakness.\n\
             security = \"{security}\"\n"
        ),
    }
}

impl Host {
    /// What this host needs.
    fn needs(self, module: &Path, token: &str, pin: Pin) -> String {
        let (path, module) = (module.to_string_lossy(), module.display());
        let named = uri_of(token);
        // Hosts that ask for a PIN ask nothing of it.
        let (given, uri) = match pin {
            Pin::None => (String::new(), String::new()),
            Pin::Token | Pin::Passphrase => {
                (" --login --pin \"$(cat pin)\"".to_owned(), ";pin-source=file:/etc/thetacrypt/pin".to_owned())
            }
        };
        // Knot DNS logs in before it makes a key, and gives up without a PIN.
        let uri_with_pin = if uri.is_empty() { ";pin-value=none" } else { &uri };
        match self {
            Self::Opensc => format!(
                "pkcs11-tool (OpenSC):\n  pkcs11-tool --module {module}{given} --list-objects\n  pkcs11-tool --module {module}{given} \
                 --sign --id ID --mechanism ECDSA-SHA256 --signature-format openssl -i FILE -o FILE.sig\n\n"
            ),
            Self::Openssl => format!(
                "OpenSSL 3 with pkcs11-provider: openssl.cnf, named by $OPENSSL_CONF\n  openssl_conf = openssl_init\n  [openssl_init]\n  \
                 providers = provider_sect\n  [provider_sect]\n  default = default_sect\n  pkcs11 = pkcs11_sect\n  [default_sect]\n  \
                 activate = 1\n  [pkcs11_sect]\n  pkcs11-module-path = {module}\n  pkcs11-module-quirks = no-operation-state\n  \
                 activate = 1\nand then\n  openssl req -x509 -new -key '{named};object=KEY;type=private{uri}' -subj /CN=NAME \
                 -out certificate.pem\n\n"
            ),
            Self::Ssh => format!(
                "ssh, with a key of P-256, or of RSA where the server takes its hash function:\n  ssh-keygen -D {module} > key.pub\n  \
                 ssh -I {module} HOST\n\n"
            ),
            Self::Knot => format!(
                "Knot DNS: knot.conf. It makes its keys by itself, where the configuration above has a pool\n  \
                 keystore:\n    - id: threshold\n      backend: pkcs11\n      config: {}\n  \
                 policy:\n    - id: threshold\n      keystore: threshold\n      algorithm: ed25519\n  \
                 zone:\n    - domain: ZONE\n      dnssec-signing: on\n      dnssec-policy: threshold\n\n",
                quoted(&format!("{named}{uri_with_pin} {path}"))
            ),
            Self::Bind => bind(&named, &uri),
            Self::Krill => {
                // It logs in only where it is given a PIN, and has no other place for it.
                let pin = if given.is_empty() { "" } else { "  user_pin = \"PIN\"\n" };
                format!(
                    "Krill: krill.conf. It makes its keys by itself, where the configuration above has a pool of RSA keys\n  \
                     [[signers]]\n  type = \"PKCS#11\"\n  name = \"threshold\"\n  lib_path = {}\n  \
                     slot = {}\n{pin}\n",
                    toml_text(&path),
                    toml_text(token)
                )
            }
            Self::P11kit => format!(
                "p11-kit, for GnuTLS and others: /etc/pkcs11/modules/thetacrypt.module\n  module: {module}\nand then\n  \
                 p11tool --list-all '{named}'\n"
            ),
        }
    }
}

/// The URI of a token (RFC 7512): whatever else than letters and digits stands in a label could be a part of the URI, or of the file or the
/// command that it stands in.
fn uri_of(label: &str) -> String {
    let mut uri = "pkcs11:token=".to_owned();
    for byte in label.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

/// A text as the files of Knot DNS have it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// What BIND needs for the token of this URI. It makes keys of Ed25519 itself, whatever its policy says of a key store.
fn bind(named: &str, uri: &str) -> String {
    let key =
        |role: &str| format!("      {role} key-store \"threshold\" lifetime unlimited algorithm ecdsap256sha256;\n");
    let (ksk, zsk) = (key("ksk"), key("zsk"));
    format!(
        "BIND 9.20, with what OpenSSL 3 needs named by $OPENSSL_CONF: named.conf. It makes its keys by itself, where the module's configuration has a pool\n  \
         key-store \"threshold\" {{\n    directory \"keys\";\n    pkcs11-uri \"{named}{uri}\";\n  }};\n  \
         dnssec-policy \"threshold\" {{\n    keys {{\n{ksk}{zsk}    }};\n  }};\n  \
         zone \"ZONE\" {{\n    type primary;\n    file \"ZONE.zone\";\n    dnssec-policy \"threshold\";\n    inline-signing yes;\n  }};\n\
         and, for a key that is there already (of P-256, or of RSA: those of Ed25519 BIND wants to write down)\n  \
         dnssec-keyfromlabel -a ECDSAP256SHA256 -l '{named};object=KEY{uri}' ZONE\n\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(host: Host, label: &str) -> String {
        host.needs(Path::new("/usr/lib/libtheta_pkcs11.so"), label, Pin::None)
    }

    #[test]
    fn labels_are_a_part_of_nothing_else() {
        let label = "a b;object=c\"'\u{e9}";
        for host in [Host::Openssl, Host::Knot, Host::Bind, Host::P11kit] {
            let text = needs(host, label);
            assert!(text.contains("pkcs11:token=a%20b%3Bobject%3Dc%22%27%C3%A9"), "{text}");
            assert!(!text.contains("a b;"), "{text}");
        }
        let knot = needs(Host::Knot, "zone-1.example");
        let config = "config: \"pkcs11:token=zone-1.example;pin-value=none /usr/lib/libtheta_pkcs11.so\"";
        assert!(knot.contains(config), "{knot}");
        let krill = needs(Host::Krill, label);
        assert!(krill.contains("  slot = \"a b;object=c\\\"'\u{e9}\"\n"), "{krill}");
    }

    #[test]
    fn what_stands_in_a_file_of_knot_ends_it_nowhere() {
        assert_eq!(quoted("/a \"b\\c"), "\"/a \\\"b\\\\c\"");
    }
}
