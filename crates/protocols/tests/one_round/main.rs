//! The one-round protocol on real keys of every suite, in whole groups.

#[cfg(test)]
mod lying_encryptor;
#[cfg(test)]
mod misbehaviour;
#[cfg(test)]
mod proofs;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod seeds;
#[cfg(test)]
mod support;
