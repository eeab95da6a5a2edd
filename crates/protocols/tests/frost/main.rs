//! Robust FROST on real keys of every suite, in whole groups.

#[cfg(test)]
mod honest;
#[cfg(test)]
mod misbehaviour;
#[cfg(test)]
mod precomputed;
#[cfg(test)]
mod randomized;
#[cfg(test)]
mod seeds;
#[cfg(test)]
mod support;
