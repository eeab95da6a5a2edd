//! The key that a request names, and what the policy is asked about it.

use bytes::Bytes;
use theta_policy::Operation;
use theta_schemes::{
    ciphers::payload::Header,
    keys::{KeyName, KeyNameError},
};
use tonic::Status;

use super::Asked;
use crate::grpc::refusal;

/// What stands between a key's name and its version.
const VERSION_MARK: char = '@';
/// Stands before the version among the parameters of a request.
const VERSION_DOMAIN: &[u8] = b"theta/version/v1\0";

/// A key as a request names it: `NAME`, or `NAME@VERSION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRef {
    pub(crate) name: KeyName,
    pub(crate) version: Option<u32>,
}

impl KeyRef {
    /// Reads what the caller wrote.
    ///
    /// # Errors
    /// The caller's mistake.
    pub(crate) fn parse(text: &str) -> Result<Self, Status> {
        let (name, version) = match text.split_once(VERSION_MARK) {
            None => (text, None),
            Some((name, digits)) => {
                // One text for each version: no signs, no leading zeros.
                let version = digits.parse().ok().filter(|version: &u32| *version > 0 && version.to_string() == digits);
                let wrong = || refusal::invalid("the version behind the @ of a key is a number from 1");
                (name, Some(version.ok_or_else(wrong)?))
            }
        };
        let name = name.parse().map_err(|error: KeyNameError| refusal::invalid(error.to_string()))?;
        Ok(Self { name, version })
    }

    /// The name with the version, if one was named.
    pub(crate) fn qualified(&self) -> String {
        self.version.map_or_else(|| self.name.to_string(), |version| format!("{}{VERSION_MARK}{version}", self.name))
    }

    /// An operation with this key. `seed`: that of a re-randomised key, or nothing.
    pub(crate) fn asked(&self, operation: Operation, statement: Bytes, seed: &Bytes) -> Asked {
        let parameters = match self.version {
            None => seed.clone(),
            Some(version) => [VERSION_DOMAIN, &version.to_be_bytes(), seed].concat().into(),
        };
        Asked { key: Some(self.name.to_string()), statement, parameters, ..Asked::new(operation) }
    }

    /// The opening of a ciphertext with this header.
    ///
    /// # Errors
    /// It is no header.
    pub(crate) fn asked_to_open(&self, operation: Operation, header: &Bytes) -> Result<Asked, Status> {
        let label = Header::parse(header).map_err(|error| refusal::request(&error))?.label();
        Ok(Asked { label: header.slice_ref(label), ..self.asked(operation, header.clone(), &Bytes::new()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_may_name_their_version_in_one_way() {
        let key = KeyRef::parse("files@12").unwrap();
        assert_eq!((key.name.as_ref(), key.version, key.qualified().as_str()), ("files", Some(12), "files@12"));
        assert_eq!(KeyRef::parse("files").unwrap().qualified(), "files");
        for bad in
            ["", "@1", "files@", "files@0", "files@01", "files@+1", "files@x", "files@1@2", "Files", "files@4294967296"]
        {
            assert_eq!(KeyRef::parse(bad).unwrap_err().code(), tonic::Code::InvalidArgument, "{bad}");
        }
    }

    #[test]
    fn a_version_is_part_of_what_a_client_signs() {
        let parameters = |key: &str, seed: &'static [u8]| {
            KeyRef::parse(key).unwrap().asked(Operation::Sign, Bytes::new(), &Bytes::from_static(seed)).parameters
        };
        assert_eq!(parameters("files", b""), "");
        assert_eq!(parameters("files", b"seed"), "seed");
        assert_eq!(parameters("files@2", b"seed"), &b"theta/version/v1\0\0\0\0\x02seed"[..]);
    }
}
