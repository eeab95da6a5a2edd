//! From text to a checked [`Policy`]: clients and approvers.

use core::{ops::Range, time::Duration};
use std::{
    collections::{BTreeSet, HashMap},
    path::PathBuf,
};

use theta_statements::{Digest, Name, VerifyingKey};
use toml::Spanned;

use super::text::{AgentText, ApproverText, ClientText, ListText, PolicyText};
use super::{MOST_ENTRIES, MOST_FILE, MOST_LIST, PolicyProblem};
use crate::Policy;
use crate::agent::{Agent, MOST_AGENT_TIME};
use crate::approval::Approver;
use crate::policy::{AllLimits, Limits};
use crate::request::Credential;

/// The longest path of a socket in bytes, as systems have it.
const MOST_SOCKET: usize = 107;
/// How long an agent may take that the file says nothing about.
const AGENT_TIME: Duration = Duration::from_secs(2);

/// The place of a problem, in bytes, and the problem.
pub(super) type Fault = (Option<Range<usize>>, PolicyProblem);

pub(super) fn fault<T, V>(at: &Spanned<T>, problem: PolicyProblem) -> Result<V, Fault> {
    Err((Some(at.span()), problem))
}

pub(super) fn parse(text: &str, digest: Digest) -> Result<Policy, Fault> {
    if text.len() > MOST_FILE {
        return Err((None, PolicyProblem::TooLarge(text.len())));
    }
    if let Some(place) = theta_statements::find_token(text) {
        return Err((Some(place), PolicyProblem::Token));
    }
    let raw: PolicyText = toml::from_str(text).map_err(|error| {
        let message = error.message().lines().collect::<Vec<_>>().join("; ");
        (error.span(), PolicyProblem::Syntax(message))
    })?;
    if *raw.format.get_ref() != 1 {
        return fault(&raw.format, PolicyProblem::Format(*raw.format.get_ref()));
    }
    few("client", &raw.client)?;
    few("approver", &raw.approver)?;
    few("agent", &raw.agent)?;
    few("rule", &raw.rule)?;
    few("signing", &raw.signing)?;
    let mut people = People::default();
    if let Some(raw) = &raw.limits {
        people.limits.default = super::limits::limits(raw, Limits::DEFAULT)?;
    }
    for client in raw.client {
        people.client(client.into_inner())?;
    }
    for approver in &raw.approver {
        people.approver(approver.get_ref())?;
    }
    for agent in &raw.agent {
        people.agent(agent.get_ref())?;
    }
    let mut rule_names = Names::new("rule");
    let rules = raw
        .rule
        .into_iter()
        .map(|rule| super::rules::rule(rule, text, &people, &mut rule_names))
        .collect::<Result<_, _>>()?;
    let mut signing_names = Names::new("signing rule");
    let signing = raw
        .signing
        .into_iter()
        .map(|rule| super::rules::signing(rule.into_inner(), &mut signing_names))
        .collect::<Result<_, _>>()?;
    let People { credentials, outdated, limits, .. } = people;
    Ok(Policy { credentials, outdated, rules, signing, limits, digest })
}

fn few<T>(what: &'static str, tables: &[Spanned<T>]) -> Result<(), Fault> {
    match tables.get(MOST_ENTRIES) {
        Some(first_too_many) => fault(first_too_many, PolicyProblem::TooMany { what, got: tables.len() }),
        None => Ok(()),
    }
}

/// Names that must be different.
pub(super) struct Names {
    what: &'static str,
    seen: BTreeSet<Name>,
}

impl Names {
    pub(super) const fn new(what: &'static str) -> Self {
        Self { what, seen: BTreeSet::new() }
    }

    pub(super) fn add(&mut self, raw: &Spanned<String>) -> Result<Name, Fault> {
        let name: Name = raw.get_ref().parse().or_else(|error| fault(raw, PolicyProblem::Name(error)))?;
        if self.seen.insert(name.clone()) {
            Ok(name)
        } else {
            fault(raw, PolicyProblem::DuplicateName { what: self.what, name: name.to_string() })
        }
    }

    /// The name, if it was added before.
    pub(super) fn find(&self, raw: &Spanned<String>) -> Result<Name, Fault> {
        let named = self.seen.iter().find(|name| name.as_str() == raw.get_ref());
        named.cloned().map_or_else(|| fault(raw, self.unknown(raw.get_ref())), Ok)
    }

    fn unknown(&self, name: &str) -> PolicyProblem {
        let mut known: Vec<_> = self.seen.iter().take(8).map(Name::as_str).collect();
        if self.seen.len() > known.len() {
            known.push("...");
        }
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        PolicyProblem::Unknown { what: self.what, name: name.chars().take(80).collect(), known }
    }
}

/// Whether it is the hash of a token, as policies had it when tokens were sent whole.
fn is_hash(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|digits| digits.parse::<Digest>().is_ok())
}

/// Clients and approvers.
pub(super) struct People {
    /// Clients with tokens of before.
    outdated: BTreeSet<Name>,
    pub(super) clients: Names,
    pub(super) approver_names: Names,
    pub(super) approvers: Vec<Approver>,
    pub(super) agent_names: Names,
    pub(super) agents: Vec<Agent>,
    pub(super) limits: AllLimits,
    credentials: HashMap<Credential, Name>,
    keys: BTreeSet<VerifyingKey>,
}

impl Default for People {
    fn default() -> Self {
        Self {
            outdated: BTreeSet::new(),
            clients: Names::new("client"),
            approver_names: Names::new("approver"),
            approvers: Vec::new(),
            agent_names: Names::new("agent"),
            agents: Vec::new(),
            limits: AllLimits::default(),
            credentials: HashMap::new(),
            keys: BTreeSet::new(),
        }
    }
}

impl People {
    fn client(&mut self, raw: ClientText) -> Result<(), Fault> {
        let name = self.clients.add(&raw.name)?;
        if let Some(raw) = &raw.limits {
            let own = super::limits::limits(raw, self.limits.default)?;
            self.limits.clients.insert(name.clone(), own);
        }
        if raw.certificates.is_none() && raw.tokens.is_none() && raw.signing_keys.is_none() {
            return fault(&raw.name, PolicyProblem::NoCredential(name.to_string()));
        }
        if let Some(certificates) = raw.certificates {
            for entry in list("certificates", certificates)? {
                let digest = entry.get_ref().parse::<Digest>();
                let digest = digest.or_else(|_| fault(&entry, PolicyProblem::Certificate(entry.get_ref().clone())))?;
                self.credential(&name, Credential::Certificate(digest), &entry)?;
            }
        }
        if let Some(tokens) = raw.tokens {
            for entry in list("tokens", tokens)? {
                // A node that is new must not stop because one client's token is old: nobody is recognised by it, and the node says so.
                if is_hash(entry.get_ref()) {
                    self.outdated.insert(name.clone());
                    continue;
                }
                // An error does not repeat it, since it may be a secret of another form.
                let key: VerifyingKey = entry.get_ref().parse().or_else(|_| fault(&entry, PolicyProblem::TokenKey))?;
                self.own_key(key, &entry)?;
                self.credential(&name, Credential::Token(key.into()), &entry)?;
            }
        }
        if let Some(keys) = raw.signing_keys {
            for entry in list("signing_keys", keys)? {
                let key = self.key(&entry)?;
                self.credential(&name, Credential::Key(key), &entry)?;
            }
        }
        Ok(())
    }

    fn approver(&mut self, raw: &ApproverText) -> Result<(), Fault> {
        let name = self.approver_names.add(&raw.name)?;
        let key = self.key(&raw.key)?;
        self.approvers.push(Approver { name, key });
        Ok(())
    }

    fn agent(&mut self, raw: &AgentText) -> Result<(), Fault> {
        let name = self.agent_names.add(&raw.name)?;
        let socket = PathBuf::from(raw.socket.get_ref());
        if !socket.is_absolute() || raw.socket.get_ref().len() > MOST_SOCKET {
            return fault(&raw.socket, PolicyProblem::Socket(raw.socket.get_ref().chars().take(120).collect()));
        }
        let timeout = match &raw.timeout_ms {
            None => AGENT_TIME,
            Some(raw) => {
                let time = u64::try_from(*raw.get_ref()).ok().filter(|time| *time > 0).map(Duration::from_millis);
                let time = time.filter(|time| *time <= MOST_AGENT_TIME);
                time.map_or_else(|| fault(raw, PolicyProblem::AgentTime(*raw.get_ref())), Ok)?
            }
        };
        self.agents.push(Agent { name, socket, timeout });
        Ok(())
    }

    fn credential(&mut self, client: &Name, credential: Credential, at: &Spanned<String>) -> Result<(), Fault> {
        if self.credentials.insert(credential, client.clone()).is_some() {
            return fault(at, PolicyProblem::DuplicateCredential(at.get_ref().clone()));
        }
        Ok(())
    }

    /// Reads a public key that no other client or approver has.
    fn key(&mut self, raw: &Spanned<String>) -> Result<VerifyingKey, Fault> {
        let key = raw.get_ref().parse().or_else(|error| fault(raw, PolicyProblem::Key(error)))?;
        self.own_key(key, raw)?;
        Ok(key)
    }

    /// Notes a key that no other client or approver has: a client must not approve with the key that it asks with.
    fn own_key(&mut self, key: VerifyingKey, at: &Spanned<String>) -> Result<(), Fault> {
        if !self.keys.insert(key) {
            return fault(at, PolicyProblem::DuplicateCredential(key.to_string()));
        }
        Ok(())
    }
}

/// The entries of a list that is neither empty nor too long and has no entry twice.
pub(super) fn list(what: &'static str, raw: Spanned<ListText>) -> Result<ListText, Fault> {
    if raw.get_ref().is_empty() {
        return fault(&raw, PolicyProblem::Empty(what));
    }
    if raw.get_ref().len() > MOST_LIST {
        return fault(&raw, PolicyProblem::LongList { what, got: raw.get_ref().len() });
    }
    let mut seen = BTreeSet::new();
    if let Some(entry) = raw.get_ref().iter().find(|entry| !seen.insert(entry.get_ref())) {
        return fault(entry, PolicyProblem::Repeated { what, entry: entry.get_ref().chars().take(80).collect() });
    }
    Ok(raw.into_inner())
}
