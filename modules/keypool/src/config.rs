//! The configuration of the module: where the groups are, and how it asks them.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::{getegid, geteuid, getgid, getuid};
use serde::Deserialize;

use crate::{BindingsFile, Prefix, Security};

/// The largest configuration in bytes.
const MOST_BYTES: u64 = 1 << 20;
/// The most tokens: a host lists them all at each start.
const MOST_TOKENS: usize = 64;
/// The longest label of a token in bytes (`CK_TOKEN_INFO`).
pub const LABEL: usize = 32;
/// How long the nodes may take for a call, in milliseconds, if the configuration does not say.
const USUAL_TIMEOUT: u64 = 10_000;
/// The longest time for a call, in milliseconds.
const MOST_TIMEOUT: u64 = 600_000;

/// The file of the configuration.
const CONFIG: &str = "THETA_PKCS11_CONFIG";
/// The client file or directory, where there is no configuration: the variable of the command line.
const CLIENT: &str = "THETA_CLIENT";
/// Where configurations are looked for that nobody names: for all users of the machine.
const USUAL_CONFIG: &str = "/etc/thetacrypt/pkcs11.toml";

/// What a host's PIN is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pin {
    /// Nothing: the client file is the credential. Hosts that log in all the same may, with any PIN.
    #[default]
    None,
    /// A token, as `theta token new` writes it.
    Token,
    /// What locks the private keys of the client file (`theta client lock`).
    Passphrase,
}

/// Where lines go that the module has to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogTo {
    /// Nowhere.
    Off,
    /// The standard error of the host.
    #[default]
    Stderr,
    /// The end of this file.
    File(PathBuf),
}

/// Where a token has keys for hosts that make their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// What the names of its keys begin with.
    pub prefix: Prefix,
    /// Which of them have been given to hosts.
    pub bindings: BindingsFile,
    /// What its keys are safe from: no others are given to hosts.
    pub security: Security,
}

/// One token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenConfig {
    /// The client file or client directory.
    pub client: PathBuf,
    /// The token's label; the group's name if there is none.
    pub label: Option<String>,
    /// What a host's PIN is.
    pub pin: Pin,
    /// How long the nodes may take for a call.
    pub timeout: Duration,
    /// Whether `C_DestroyObject` destroys keys.
    pub destroy: bool,
    /// Whether `C_GenerateKeyPair` gives keys, and which.
    pub pool: Option<PoolConfig>,
    /// The socket of whoever says which digests will be signed next, so that they are signed together.
    pub look_ahead: Option<PathBuf>,
}

/// The configuration of the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where lines go that the module has to say.
    pub log: LogTo,
    /// The tokens, in the order of their slots.
    pub tokens: Vec<TokenConfig>,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Nobody says where a client is.
    #[error(
        "there is no group to ask: name a client file, as theta client new writes it, in {CLIENT}, or a configuration in {CONFIG} or \
         {USUAL_CONFIG} (theta pkcs11 config prints one)"
    )]
    Nothing,
    /// The file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// The file is wrong.
    #[error("{}: {reason}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    log: Option<String>,
    #[serde(default)]
    token: Vec<TokenFields>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenFields {
    client: PathBuf,
    label: Option<String>,
    /// Whatever stands there, since it may be a PIN.
    pin: Option<toml::Value>,
    timeout_ms: Option<u64>,
    #[serde(default)]
    destroy: bool,
    pool: Option<String>,
    bindings: Option<PathBuf>,
    /// Whatever stands there, as with `pin`.
    security: Option<toml::Value>,
    look_ahead: Option<PathBuf>,
}

/// Says what is wrong with the label that a configuration gives a token, if anything is.
///
/// # Errors
/// In words.
pub fn check_label(label: &str) -> Result<(), String> {
    if label.is_empty() || label.len() > LABEL {
        return Err(format!("the label {label:?} has {} bytes: write 1 to {LABEL}", label.len()));
    }
    Ok(())
}

/// What hosts are shown of a token's label, or of its group's name: as many whole characters as there is room for.
#[must_use]
pub fn shown_label(label: &str) -> &str {
    label.get(..label.floor_char_boundary(LABEL)).unwrap_or_default()
}

/// Where bindings are, beside the configuration, if it does not say.
const USUAL_BINDINGS: &str = "bindings.toml";

impl Config {
    /// The configuration of this process: that of the variables and files where hosts have it. A process with more rights than who
    /// started it has that of the machine: its environment is not its own, and would choose the files that it reads and writes. Whether it has,
    /// the numbers of its users say (set-user-id), or the caller, who can ask the system (capabilities of its file).
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn load(is_secure: bool) -> Result<Self, ConfigError> {
        let is_own = !is_secure && getuid() == geteuid() && getgid() == getegid();
        Self::from_environment(is_own, |name| env::var_os(name))
    }

    fn from_environment(is_own: bool, variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, ConfigError> {
        Self::from_variables(|name| variable(name).filter(|value| is_own && !value.is_empty()))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, ConfigError> {
        if let Some(path) = variable(CONFIG) {
            return Self::read(Path::new(&path));
        }
        if let Some(client) = variable(CLIENT) {
            let timeout = Duration::from_millis(USUAL_TIMEOUT);
            let token = TokenConfig {
                client: client.into(),
                label: None,
                pin: Pin::None,
                timeout,
                destroy: false,
                pool: None,
                look_ahead: None,
            };
            return Ok(Self { log: LogTo::default(), tokens: vec![token] });
        }
        let own = variable("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(Path::new(&variable("HOME")?).join(".config")));
        let own = own.map(|folder| folder.join("thetacrypt").join("pkcs11.toml"));
        let places = own.into_iter().chain([PathBuf::from(USUAL_CONFIG)]);
        let found = places.into_iter().find(|path| path.is_file()).ok_or(ConfigError::Nothing)?;
        Self::read(&found)
    }

    /// The configuration in this file.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let unreadable = |reason: String| ConfigError::Read { path: path.to_owned(), reason };
        let size = fs::metadata(path).map_err(|error| unreadable(error.to_string()))?.len();
        if size > MOST_BYTES {
            return Err(unreadable(format!("it has {size} bytes, and a configuration at most {MOST_BYTES}")));
        }
        let text = fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        Self::parse(&text, path)
    }

    /// Files are relative to the folder of the configuration.
    fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let wrong = |reason: String| ConfigError::Wrong { path: path.to_owned(), reason };
        // Only the place and what was expected there: the line itself may have a PIN that stands in a wrong place.
        let place = |error: &toml::de::Error| error.span().and_then(|span| text.get(..span.start)).map(lines);
        let File { log, token } = toml::from_str(text).map_err(|error| {
            wrong(match place(&error) {
                Some(line) => format!("line {line}: {}", without_value(error.message())),
                None => without_value(error.message()),
            })
        })?;
        if token.is_empty() || token.len() > MOST_TOKENS {
            return Err(wrong(format!("it has {} [[token]] tables: write 1 to {MOST_TOKENS}", token.len())));
        }
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        let tokens = token.into_iter().map(|fields| fields.check(folder)).collect::<Result<_, _>>().map_err(wrong)?;
        let log = match log.as_deref() {
            None | Some("stderr") => LogTo::Stderr,
            Some("off") => LogTo::Off,
            Some(file) => LogTo::File(folder.join(file)),
        };
        Ok(Self { log, tokens })
    }
}

/// The words of an error without what stands in the file: `invalid type: integer `7`, expected a string`.
fn without_value(words: &str) -> String {
    let is_of_value = ["invalid type: ", "invalid value: "].iter().any(|begin| words.starts_with(begin));
    match words.rsplit_once(", expected ").filter(|_| is_of_value) {
        Some((_, expected)) => format!("expected {expected}"),
        None => words.to_owned(),
    }
}

/// The number of the line that this text ends in.
fn lines(before: &str) -> usize {
    before.matches('\n').count().saturating_add(1)
}

impl TokenFields {
    fn check(self, folder: &Path) -> Result<TokenConfig, String> {
        let timeout = self.timeout_ms.unwrap_or(USUAL_TIMEOUT);
        if !(1..=MOST_TIMEOUT).contains(&timeout) {
            return Err(format!("timeout_ms is {timeout}: write 1 to {MOST_TIMEOUT}"));
        }
        self.label.as_deref().map_or(Ok(()), check_label)?;
        let pool = pool(self.pool, self.bindings, self.security.as_ref(), folder)?;
        if self.look_ahead.as_ref().is_some_and(|socket| socket.as_os_str().is_empty()) {
            return Err("look_ahead is empty: write the socket of theta-dnssec agent --look-ahead SOCKET".to_owned());
        }
        let look_ahead = self.look_ahead.map(|socket| folder.join(socket));
        let (client, timeout) = (folder.join(self.client), Duration::from_millis(timeout));
        // A table or a number is as little a word as any other text.
        let pin = match self.pin.as_ref().map(|pin| pin.as_str().unwrap_or_default()) {
            None | Some("none") => Pin::None,
            Some("token") => Pin::Token,
            Some("passphrase") => Pin::Passphrase,
            // What stands there may be a PIN, and is not repeated.
            Some(_) => {
                return Err(
                    "pin is \"none\", \"token\" or \"passphrase\": what a host's PIN is, and not the PIN".to_owned()
                );
            }
        };
        Ok(TokenConfig { client, label: self.label, pin, timeout, destroy: self.destroy, pool, look_ahead })
    }
}

/// The pool of a token, if it has one.
fn pool(
    name: Option<String>,
    bindings: Option<PathBuf>,
    security: Option<&toml::Value>,
    folder: &Path,
) -> Result<Option<PoolConfig>, String> {
    let security = security.map(|word| word.as_str().unwrap_or_default().parse::<Security>());
    let security = security.transpose().map_err(|error| error.to_string())?;
    match (name, &bindings, security) {
        (Some(name), ..) => {
            let prefix = name.parse().map_err(|error: crate::PrefixError| error.to_string())?;
            let bindings = folder.join(bindings.unwrap_or_else(|| USUAL_BINDINGS.into()));
            let bindings = BindingsFile::new(bindings);
            Ok(Some(PoolConfig { prefix, bindings, security: security.unwrap_or_default() }))
        }
        (None, None, None) => Ok(None),
        (None, Some(_), _) => Err("bindings are of a pool: write pool = \"NAME\", too".to_owned()),
        (None, None, Some(_)) => Err("security is that of a pool's keys: write pool = \"NAME\", too".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(text, Path::new("/etc/thetacrypt/pkcs11.toml"))
    }

    #[test]
    fn files_are_beside_the_configuration() {
        let config = parse("log = \"log\"\n[[token]]\nclient = \"ann.client\"\npin = \"token\"\n").unwrap();
        assert_eq!(config.log, LogTo::File("/etc/thetacrypt/log".into()));
        let [token] = &config.tokens[..] else { panic!("{config:?}") };
        assert_eq!((token.client.as_path(), token.pin), (Path::new("/etc/thetacrypt/ann.client"), Pin::Token));
        assert_eq!((token.timeout, token.destroy, &token.look_ahead), (Duration::from_secs(10), false, &None));
        let ahead = parse("[[token]]\nclient = \"a\"\nlook_ahead = \"ahead.sock\"\n").unwrap();
        assert_eq!(ahead.tokens[0].look_ahead.as_deref(), Some(Path::new("/etc/thetacrypt/ahead.sock")));
        assert_eq!(parse("log = \"off\"\n[[token]]\nclient = \"/a\"\n").unwrap().log, LogTo::Off);
    }

    #[test]
    fn a_pool_has_bindings_beside_the_configuration() {
        let pool = |lines: &str| parse(&format!("[[token]]\nclient = \"a\"\n{lines}")).unwrap().tokens[0].pool.clone();
        assert_eq!(pool(""), None);
        let usual = pool("pool = \"zone\"\n").unwrap();
        assert_eq!(usual.bindings.path(), Path::new("/etc/thetacrypt/bindings.toml"));
        assert_eq!(usual.prefix.to_string(), "zone");
        let named = pool("pool = \"zone\"\nbindings = \"/var/lib/b.toml\"\n").unwrap();
        assert_eq!(named.bindings.path(), Path::new("/var/lib/b.toml"));
        let security = |line: &str| pool(&format!("pool = \"zone\"\n{line}")).unwrap().security;
        assert_eq!([security(""), security("security = \"active\"\n")], [Security::Active; 2]);
        assert_eq!(security("security = \"passive\"\n"), Security::Passive);
    }

    #[test]
    fn mistakes_are_named() {
        let token = "[[token]]\nclient = \"a\"\n";
        for (text, word) in [
            (String::new(), "0 [[token]]"),
            (format!("{token}pins = 1\n"), "pins"),
            (format!("{token}pin = \"hunter-2\"\n"), "and not the PIN"),
            (format!("{token}pin = hunter-2\n"), "line 3: "),
            (format!("{token}hunter = \"hunter-2\"\n"), "line 3: "),
            (format!("{token}pin = 73918264\n"), "and not the PIN"),
            (format!("{token}pin = -7391826.4\n"), "and not the PIN"),
            (format!("{token}pin = [73918264, \"hunter-2\"]\n"), "and not the PIN"),
            (format!("{token}pin = {{ of = 73918264 }}\n"), "and not the PIN"),
            (format!("{token}pin = 739182647391826473918264\n"), "line 3: "),
            (format!("{token}label = 73918264\n"), "line 3: expected a string"),
            (format!("{token}timeout_ms = \"hunter-2\"\n"), "line 3: expected u64"),
            (format!("{token}timeout_ms = 0\n"), "timeout_ms is 0"),
            (format!("{token}label = \"{}\"\n", "x".repeat(33)), "33 bytes"),
            (token.repeat(65), "65 [[token]]"),
            (format!("{token}pool = \"Zone\"\n"), "\"Zone\" is no pool"),
            (format!("{token}bindings = \"b\"\n"), "write pool"),
            (format!("{token}security = \"passive\"\n"), "write pool"),
            (format!("{token}pool = \"a\"\nsecurity = \"hunter-2\"\n"), "is \"active\" or \"passive\""),
            (format!("{token}pool = \"a\"\nsecurity = 7391826\n"), "is \"active\" or \"passive\""),
            (format!("{token}look_ahead = \"\"\n"), "look_ahead is empty"),
        ] {
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.contains(word) && error.starts_with("/etc/thetacrypt/pkcs11.toml: "), "{error}");
            assert!(!error.contains("hunter-2") && !error.contains("7391826"), "{error}");
        }
    }

    #[test]
    fn of_a_label_whole_characters_are_shown() {
        assert_eq!(shown_label("the token"), "the token");
        assert_eq!(shown_label(&"x".repeat(40)), "x".repeat(32));
        assert_eq!(shown_label(&format!("{}\u{20ac}", "x".repeat(30))), "x".repeat(30));
    }

    #[test]
    fn variables_come_first() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pkcs11.toml");
        fs::write(&file, "[[token]]\nclient = \"b\"\n").unwrap();
        let client = |name: &str| (name == CLIENT).then(|| OsString::from("a.client"));
        assert_eq!(Config::from_variables(client).unwrap().tokens[0].client, Path::new("a.client"));
        let both = |name: &str| if name == CONFIG { Some(file.clone().into()) } else { client(name) };
        assert_eq!(Config::from_variables(both).unwrap().tokens[0].client, dir.path().join("b"));
        let missing = |name: &str| (name == CONFIG).then(|| OsString::from("/absent/pkcs11.toml"));
        assert!(Config::from_variables(missing).unwrap_err().to_string().contains("cannot read /absent"));
        // What whoever started it has chosen is nothing to a process with more rights.
        let chosen = |is_own| Config::from_environment(is_own, client).map(|config| config.tokens[0].client.clone());
        assert_eq!(chosen(true).unwrap(), Path::new("a.client"));
        assert_ne!(chosen(false).ok(), Some("a.client".into()));
        let home = |name: &str| (name == "XDG_CONFIG_HOME").then(|| dir.path().into());
        fs::create_dir(dir.path().join("thetacrypt")).unwrap();
        fs::copy(&file, dir.path().join("thetacrypt/pkcs11.toml")).unwrap();
        assert_eq!(Config::from_variables(home).unwrap().tokens.len(), 1);
    }
}
