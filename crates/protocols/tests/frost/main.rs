//! Robust FROST on real keys of every suite, in whole groups.

#[cfg(test)]
mod honest;
#[cfg(test)]
mod misbehaviour;
#[cfg(test)]
mod seeds;
#[cfg(test)]
mod support;
