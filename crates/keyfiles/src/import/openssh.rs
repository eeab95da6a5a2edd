//! OpenSSH's own format for private keys (`PROTOCOL.key` in its sources): one unencrypted Ed25519 key.

use super::ImportError;
use super::private_key::{Kind, PrivateKey};

/// The label of the block.
pub(super) const LABEL: &str = "OPENSSH PRIVATE KEY";
const MAGIC: &[u8] = b"openssh-key-v1\0";
const ED25519: &[u8] = b"ssh-ed25519";
/// Without encryption the private part is padded to a multiple of this, in bytes.
const BLOCK: usize = 8;

const CUT_SHORT: ImportError = ImportError::Malformed("it is cut short");
const DECRYPT: &str = "ssh-keygen -p -N \"\" -f COPY";

/// Reads the bytes of a block.
pub(super) fn read(bytes: &[u8]) -> Result<PrivateKey, ImportError> {
    let mut outer = Fields(bytes.strip_prefix(MAGIC).ok_or(ImportError::Malformed("it is not openssh-key-v1"))?);
    let (cipher, derivation, _options) = (outer.string()?, outer.string()?, outer.string()?);
    if cipher != b"none" || derivation != b"none" {
        return Err(ImportError::Encrypted(DECRYPT));
    }
    if outer.number()? != 1 {
        return Err(ImportError::Malformed("it does not hold exactly one key"));
    }
    let public = public_key(outer.string()?)?;
    let private = outer.string()?;
    if !outer.0.is_empty() || private.len() % BLOCK != 0 {
        return Err(ImportError::Malformed("it has bytes too many or too few"));
    }
    private_key(private, public)
}

/// The 32 bytes of an `ssh-ed25519` public key.
fn public_key(blob: &[u8]) -> Result<&[u8], ImportError> {
    let mut fields = Fields(blob);
    algorithm(fields.string()?)?;
    fields.string()
}

fn algorithm(name: &[u8]) -> Result<(), ImportError> {
    match name {
        ED25519 => return Ok(()),
        b"ecdsa-sha2-nistp256" => return Err(ImportError::OpenSshForm("OpenSSH ECDSA")),
        b"ssh-rsa" => return Err(ImportError::OpenSshForm("OpenSSH RSA")),
        _ => {}
    }
    let printable = name.iter().take(40).filter(|byte| byte.is_ascii_graphic()).map(|byte| char::from(*byte));
    Err(ImportError::Algorithm(format!("OpenSSH {}", printable.collect::<String>())))
}

/// Two equal numbers, the algorithm, the public key, the seed followed by the public key, a comment, and 1, 2, 3, ... as
/// padding.
fn private_key(bytes: &[u8], public: &[u8]) -> Result<PrivateKey, ImportError> {
    let mut fields = Fields(bytes);
    if fields.number()? != fields.number()? {
        return Err(ImportError::Malformed("its check numbers differ"));
    }
    algorithm(fields.string()?)?;
    let again = fields.string()?;
    let (seed, third) = fields.string()?.split_at_checked(32).ok_or(CUT_SHORT)?;
    let _comment = fields.string()?;
    if fields.0.len() >= BLOCK || !fields.0.iter().copied().eq((1_u8..).take(fields.0.len())) {
        return Err(ImportError::Malformed("its padding is not 1, 2, 3"));
    }
    if again != public || third != public {
        return Err(ImportError::PublicKey);
    }
    PrivateKey::seed(Kind::Ed25519, seed, Some(public))
}

/// The bytes that are left to read.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn number(&mut self) -> Result<u32, ImportError> {
        let (number, rest) = self.0.split_first_chunk().ok_or(CUT_SHORT)?;
        self.0 = rest;
        Ok(u32::from_be_bytes(*number))
    }

    fn string(&mut self) -> Result<&'a [u8], ImportError> {
        let len = usize::try_from(self.number()?).map_err(|_| CUT_SHORT)?;
        let (string, rest) = self.0.split_at_checked(len).ok_or(CUT_SHORT)?;
        self.0 = rest;
        Ok(string)
    }
}
