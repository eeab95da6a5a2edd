//! Results of others, checked by our code: public beacons and the test vectors of other projects.

mod drand;
mod ethereum;
mod wycheproof_ecdsa;
mod wycheproof_eddsa;
mod wycheproof_rsa;
