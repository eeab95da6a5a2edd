//! Private keys that a passphrase locks: PKCS #8 as OpenSSL has it (RFC 5958, section 3, by PBES2 of RFC 8018).

use getrandom::SysRng;
use pkcs8::{EncryptedPrivateKeyInfoRef, LineEnding, PrivateKeyInfoRef, SecretDocument, der::pem::PemLabel as _};
use theta_schemes::groups::Secret;

/// Why keys were not locked or unlocked. No secret is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// The passphrase is another one, or the key was damaged.
    #[error("the passphrase is not the one that locks the private keys")]
    Passphrase,
    /// There is nothing to lock or unlock.
    #[error("there is no private key that could be locked or unlocked")]
    Nothing,
    /// The key is no PKCS #8.
    #[error("a private key is not in the form of PKCS #8")]
    Form,
}

/// Whether this key is locked.
pub(super) fn is_locked(pem: &str) -> bool {
    pem.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----")
}

/// Locks a key with keys that scrypt derives from the passphrase, under a new salt.
pub(super) fn lock(pem: &str, passphrase: &[u8]) -> Result<Secret<String>, LockError> {
    let (label, document) = SecretDocument::from_pem(pem.trim()).map_err(|_| LockError::Form)?;
    if label != PrivateKeyInfoRef::PEM_LABEL {
        return Err(LockError::Form);
    }
    let key = PrivateKeyInfoRef::try_from(document.as_bytes()).map_err(|_| LockError::Form)?;
    let locked = key.encrypt_with_rng(&mut SysRng, passphrase).map_err(|_| LockError::Form)?;
    text(&locked, EncryptedPrivateKeyInfoRef::PEM_LABEL)
}

/// Unlocks a key.
pub(super) fn unlock(pem: &str, passphrase: &[u8]) -> Result<Secret<String>, LockError> {
    let (label, document) = SecretDocument::from_pem(pem.trim()).map_err(|_| LockError::Form)?;
    if label != EncryptedPrivateKeyInfoRef::PEM_LABEL {
        return Err(LockError::Form);
    }
    let key = EncryptedPrivateKeyInfoRef::try_from(document.as_bytes()).map_err(|_| LockError::Form)?;
    let unlocked = key.decrypt(passphrase).map_err(|_| LockError::Passphrase)?;
    text(&unlocked, PrivateKeyInfoRef::PEM_LABEL)
}

fn text(document: &SecretDocument, label: &'static str) -> Result<Secret<String>, LockError> {
    let text = document.to_pem(label, LineEnding::LF).map_err(|_| LockError::Form)?;
    Ok(Secret::new(text.as_str().to_owned()))
}
