//! Big integers and arithmetic modulo an odd public number, for RSA. All but inverses of public numbers uses aws-lc's BIGNUM,
//! which is linked for TLS anyway.
//!
//! [`Integer`] is a number of any size, [`Modulus`] and [`Residue`] compute modulo N, [`find_safe_prime_pair`] finds the primes of
//! a new modulus. Constant-time functions say so; names with `vartime` are for public data.

mod ffi;
mod integer;
mod inverse;
mod modulus;
mod product;
mod safe_primes;

pub use integer::Integer;
pub use modulus::{MAX_MODULUS_BITS, Modulus, Residue};
pub use safe_primes::{SearchProgress, find_safe_prime_pair};
