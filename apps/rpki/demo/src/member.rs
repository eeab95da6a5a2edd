//! A member of the registries, who signs what it states: as `theta-rpki statement` does.

use rpki::uri;
use theta::exit::Failure;
use theta_groups::Secret;
use theta_names::WallTime;
use theta_rpki::{attestation::Attestation, statements::Statement};
use theta_statements::SigningKey;

/// Its handle.
pub(crate) const MEMBER: &str = "acme";
/// The name of the RPKI.
pub(crate) const RPKI: &str = "example";
/// For how long a grant counts, in seconds.
const YEAR: i64 = 365 * 86_400;

/// Whoever has a key, and states as the member.
pub(crate) struct Member(SigningKey);

/// A route origin: which network announces which prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) network: u32,
    pub(crate) prefix: &'static str,
}

impl Member {
    /// With a new key.
    pub(crate) fn new() -> Result<Self, Failure> {
        let mut seed = Secret::new([0; 32]);
        getrandom::fill(seed.expose_mut()).map_err(Failure::internal)?;
        SigningKey::from_seed(seed).map(Self).map_err(Failure::internal)
    }

    /// Its public key as a registry's data have it.
    pub(crate) fn public(&self) -> String {
        hex::encode(self.0.verifying_key().as_bytes())
    }

    /// The file in which it grants an origin, or withdraws it.
    pub(crate) fn state(&self, Origin { network, prefix }: Origin, grants: bool) -> Result<String, Failure> {
        let from = i64::try_from(WallTime::now().seconds()).unwrap_or(i64::MAX);
        let until = grants.then(|| from.saturating_add(YEAR));
        let parsed = prefix.parse().map_err(Failure::internal)?;
        let attestation = Attestation::roa(network, [parsed].into());
        let attestation = attestation.ok_or_else(|| Failure::internal("a ROA without a prefix"))?;
        let (rpki, member) = (RPKI.to_owned(), MEMBER.to_owned());
        let number = Statement::first_number(from);
        let statement = Statement { rpki, member, number, from, until, attestation };
        let signature = hex::encode(self.0.sign(&statement.signed_bytes()).as_bytes());
        let (act, end) = match until {
            Some(until) => ("grant", format!("until = {until}\n")),
            None => ("withdraw", String::new()),
        };
        Ok(format!(
            "rpki = \"{RPKI}\"\nmember = \"{MEMBER}\"\nnumber = {number}\nact = \"{act}\"\nfrom = {from}\n{end}\n[roa]\nasn = {network}\nprefixes = [\"{prefix}\"]\n\n\
             [[signature]]\nkey = \"{}\"\nsignature = \"{signature}\"\n",
            self.public()
        ))
    }
}

/// Whether something is an address of rsync, which the demonstration makes itself.
pub(crate) fn is_address(text: &str) -> bool {
    uri::Rsync::from_slice(text.as_bytes()).is_ok()
}
