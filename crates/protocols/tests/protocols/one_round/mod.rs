//! The one-round protocol on real keys of every suite, in whole groups.

mod checks;
mod coins;
mod lying_encryptor;
mod misbehaviour;
mod proofs;
mod quorum;
mod requests;
mod seeds;
mod support;
