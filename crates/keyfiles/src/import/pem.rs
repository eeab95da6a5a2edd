//! Base64 between lines (RFC 7468), read as leniently as OpenSSL does: text around it and lines of any length.

use base64ct::{Base64, Encoding};
use theta_groups::Secret;

use super::private_key::PrivateKey;
use super::{ImportError, asn1, openssh};

/// The beginning of every block.
pub(super) const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// How to decrypt what OpenSSL encrypted.
const OPENSSL_DECRYPT: &str = "openssl pkey -in FILE -out COPY";

/// One block: its label and its decoded bytes.
pub(super) struct Block<'a> {
    pub(super) label: &'a str,
    bytes: Secret<Vec<u8>>,
}

/// The only private key of the text. Other blocks, such as `EC PARAMETERS` or a certificate, are skipped.
pub(super) fn private_key(text: &str) -> Result<Block<'_>, ImportError> {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(BEGIN) {
        let (label, after) = after.split_once(DASHES).ok_or(UNFINISHED)?;
        let (body, after) = after.split_once(END).ok_or(UNFINISHED)?;
        if label.ends_with("PRIVATE KEY") {
            let Some((end, after)) = after.split_once(DASHES) else { return Err(UNFINISHED) };
            if end != label {
                return Err(UNFINISHED);
            }
            if has_private_key(after) {
                return Err(ImportError::SeveralKeys);
            }
            return decode(label, body);
        }
        rest = after;
    }
    Err(ImportError::NotPrivate)
}

/// Whether another private key begins in the rest of the text.
fn has_private_key(text: &str) -> bool {
    let labels = text.split(BEGIN).skip(1).filter_map(|block| block.split_once(DASHES));
    labels.into_iter().any(|(label, _)| label.ends_with("PRIVATE KEY"))
}

const UNFINISHED: ImportError = ImportError::Malformed("it has no END line that fits its BEGIN line");

fn decode<'a>(label: &'a str, body: &str) -> Result<Block<'a>, ImportError> {
    // The older formats have RFC 1421's headers only if they are encrypted.
    if label == "ENCRYPTED PRIVATE KEY" || body.contains("Proc-Type:") {
        return Err(ImportError::Encrypted(OPENSSL_DECRYPT));
    }
    // Reserved at once: a vector that grows leaves copies of its content behind.
    let mut digits = Secret::new(Vec::with_capacity(body.len()));
    digits.expose_mut().extend(body.bytes().filter(|byte| !byte.is_ascii_whitespace()));
    let mut bytes = Secret::new(vec![0; digits.expose().len() / 4 * 3]);
    let len = Base64::decode(digits.expose(), bytes.expose_mut())
        .map_err(|_| ImportError::Malformed("it is not Base64"))?
        .len();
    bytes.expose_mut().truncate(len);
    Ok(Block { label, bytes })
}

impl Block<'_> {
    /// n, e, p and q of an RSA key.
    #[cfg(test)]
    pub(super) fn rsa_numbers(&self) -> Option<[Vec<u8>; 4]> {
        let info = pkcs8::PrivateKeyInfoRef::try_from(self.bytes.expose().as_slice()).ok()?;
        asn1::rsa_numbers(info.private_key.as_bytes()).ok().map(|numbers| numbers.map(<[u8]>::to_vec))
    }

    pub(super) fn read(&self) -> Result<PrivateKey, ImportError> {
        let bytes = self.bytes.expose();
        match self.label {
            openssh::LABEL => openssh::read(bytes),
            "PRIVATE KEY" => asn1::pkcs8(bytes),
            "EC PRIVATE KEY" => asn1::sec1(bytes, None),
            "RSA PRIVATE KEY" => asn1::pkcs1(bytes),
            label => Err(ImportError::Algorithm(label.trim_end_matches(" PRIVATE KEY").chars().take(40).collect())),
        }
    }
}
