//! What others made, checked by our code: public beacons and the test vectors of other projects.

#[cfg(test)]
mod drand;
#[cfg(test)]
mod ethereum;
#[cfg(test)]
mod wycheproof_eddsa;
#[cfg(test)]
mod wycheproof_rsa;
