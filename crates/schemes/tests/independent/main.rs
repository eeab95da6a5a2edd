//! What others made, checked by our code: public beacons and the test vectors of other projects.

#[cfg(test)]
mod drand;
#[cfg(test)]
mod ethereum;
