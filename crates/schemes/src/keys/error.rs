//! Errors of a key's parts, in one line each.

/// Why parts are not a key's public material.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublicKeyError {
    /// There is not one verification key for each party.
    #[error("there are {got} verification keys: it takes {expected}, one for each party")]
    Count {
        /// n.
        expected: usize,
        /// How many there are.
        got: usize,
    },
    /// A key is the identity, whose secret is zero.
    #[error("the public key or a verification key is the identity element: take the file as the dealer wrote it")]
    Identity,
    /// The proof of possession is missing, false, or given for a scheme that has none.
    #[error("proof_of_possession does not fit the public key: take the file as the dealer wrote it")]
    ProofOfPossession,
    /// The verification keys are not of a sharing of this public key with this k.
    #[error("the verification keys do not belong to the public key with this k: take the file as the dealer wrote it")]
    Inconsistent,
    /// No dealer makes such an RSA key.
    #[error("{0}: take the file as the dealer wrote it")]
    Rsa(&'static str),
}
