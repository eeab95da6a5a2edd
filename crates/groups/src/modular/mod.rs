//! Big integers and arithmetic modulo an odd public number, for schemes in groups of unknown order: RSA. Everything
//! but inverses of public numbers rests on aws-lc's BIGNUM, which this build has for TLS anyway.
//!
//! [`Integer`] counts, [`Modulus`] and [`Residue`] compute modulo N, [`find_safe_prime_pair`] makes a modulus of which
//! only its maker knows the order. What is constant-time says so; names with `vartime` are for public data.

mod ffi;
mod integer;
mod inverse;
mod modulus;
mod product;
mod safe_primes;

pub use integer::Integer;
pub use modulus::{MAX_MODULUS_BITS, Modulus, Residue};
pub use safe_primes::{SearchProgress, find_safe_prime_pair};
