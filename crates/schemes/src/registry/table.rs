//! The table of suites, where the Rust types of all schemes are named: a new suite is one line here.

/// The table of suites, from which all lists of them are made.
///
/// A line has the class, the variant, the Rust type of the scheme, the suite's name, the scheme's and the group's names in the
/// literature, the purpose of its keys, and a description. The class is for [`with_scheme!`](crate::with_scheme).
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_suite {
    ($then:ident! { $($arguments:tt)* }) => {
        $crate::$then! { $($arguments)*
            [one_round] Sg02Ristretto255 = $crate::ciphers::sg02::Sg02<$crate::groups::Ristretto255>,
                "sg02-ristretto255", "SG02", "ristretto255", Decrypt,
                "TDH2 (Shoup-Gennaro 2002) on ristretto255.";
            [one_round] Sg02Bls12381 = $crate::ciphers::sg02::Sg02<$crate::groups::bls12_381::G1>,
                "sg02-bls12381", "SG02", "bls12-381", Decrypt,
                "TDH2 on G1 of BLS12-381.";
            [one_round] Sg02Ed25519 = $crate::ciphers::sg02::Sg02<$crate::groups::Ed25519>,
                "sg02-ed25519", "SG02", "ed25519", Decrypt,
                "TDH2 on the group of Ed25519.";
            [one_round] Sg02Bn254 = $crate::ciphers::sg02::Sg02<$crate::groups::bn254::G1>,
                "sg02-bn254", "SG02", "bn254", Decrypt,
                "TDH2 on G1 of BN254.";
            [one_round] Sg02P256 = $crate::ciphers::sg02::Sg02<$crate::groups::P256>,
                "sg02-p256", "SG02", "p256", Decrypt,
                "TDH2 on P-256.";
            [one_round] Sg02Secp256k1 = $crate::ciphers::sg02::Sg02<$crate::groups::Secp256k1>,
                "sg02-secp256k1", "SG02", "secp256k1", Decrypt,
                "TDH2 on secp256k1.";
            [one_round] Bz03Bls12381 = $crate::ciphers::bz03::Bz03<$crate::groups::bls12_381::Bls12_381>,
                "bz03-bls12381", "BZ03", "bls12-381", Decrypt,
                "Cipher from pairings (Baek-Zheng 2003) on BLS12-381.";
            [one_round] Bz03Bn254 = $crate::ciphers::bz03::Bz03<$crate::groups::bn254::Bn254>,
                "bz03-bn254", "BZ03", "bn254", Decrypt,
                "Cipher from pairings (Baek-Zheng 2003) on BN254.";
            [one_round] Bls04MinPk = $crate::signatures::bls04::Bls04<$crate::signatures::bls04::MinPk>,
                "bls04-bls12381-min-pk", "BLS04", "bls12-381", Sign,
                "BLS signatures, minimal public key: keys in G1, signatures in G2 (what Ethereum uses).";
            [one_round] Bls04MinSig = $crate::signatures::bls04::Bls04<$crate::signatures::bls04::MinSig>,
                "bls04-bls12381-min-sig", "BLS04", "bls12-381", Sign,
                "BLS signatures, minimal signature: keys in G2, signatures in G1.";
            [one_round] Bls04Bn254 = $crate::signatures::bls04::Bls04<$crate::signatures::bls04::Bn254MinSig>,
                "bls04-bn254", "BLS04", "bn254", Sign,
                "BLS signatures on BN254, which contracts in the EVM can verify: keys in G2, signatures in G1.";
            [one_round] Cks05Ristretto255 = $crate::coins::cks05::Cks05<$crate::groups::Ristretto255>,
                "cks05-ristretto255", "CKS05", "ristretto255", Coin,
                "Diffie-Hellman coin (Cachin-Kursawe-Shoup 2005) on ristretto255.";
            [one_round] Cks05Bls12381 = $crate::coins::cks05::Cks05<$crate::groups::bls12_381::G1>,
                "cks05-bls12381", "CKS05", "bls12-381", Coin,
                "Diffie-Hellman coin on G1 of BLS12-381.";
            [one_round] Cks05Ed25519 = $crate::coins::cks05::Cks05<$crate::groups::Ed25519>,
                "cks05-ed25519", "CKS05", "ed25519", Coin,
                "Diffie-Hellman coin on the group of Ed25519.";
            [one_round] Cks05Bn254 = $crate::coins::cks05::Cks05<$crate::groups::bn254::G1>,
                "cks05-bn254", "CKS05", "bn254", Coin,
                "Diffie-Hellman coin on G1 of BN254.";
            [one_round] Cks05P256 = $crate::coins::cks05::Cks05<$crate::groups::P256>,
                "cks05-p256", "CKS05", "p256", Coin,
                "Diffie-Hellman coin on P-256.";
            [one_round] Cks05Secp256k1 = $crate::coins::cks05::Cks05<$crate::groups::Secp256k1>,
                "cks05-secp256k1", "CKS05", "secp256k1", Coin,
                "Diffie-Hellman coin on secp256k1.";
            [one_round] Cks05Ed448 = $crate::coins::cks05::Cks05<$crate::groups::Ed448>,
                "cks05-ed448", "CKS05", "ed448", Coin,
                "Diffie-Hellman coin on the group of Ed448.";
            [one_round] Cks05Bls04MinPk =
                $crate::coins::cks05_bls::Cks05Bls<$crate::coins::cks05_bls::BeaconMinPk>,
                "cks05-bls04-min-pk", "CKS05", "bls12-381", Coin,
                "Coin from a BLS signature in G2, as drand's chained beacon publishes it.";
            [one_round] Cks05Bls04MinSig =
                $crate::coins::cks05_bls::Cks05Bls<$crate::coins::cks05_bls::BeaconMinSig>,
                "cks05-bls04-min-sig", "CKS05", "bls12-381", Coin,
                "Coin from a BLS signature in G1, as drand's quicknet publishes it.";
            [rsa] Sh00Pkcs1Sha256 =
                $crate::signatures::sh00::Sh00<$crate::signatures::sh00::Pkcs1Sha256>,
                "sh00-pkcs1-sha256", "SH00", "RSA", Sign,
                "RSA signatures (Shoup 2000), PKCS#1 v1.5 with SHA-256.";
            [rsa] Sh00Pkcs1Sha512 =
                $crate::signatures::sh00::Sh00<$crate::signatures::sh00::Pkcs1Sha512>,
                "sh00-pkcs1-sha512", "SH00", "RSA", Sign,
                "RSA signatures (Shoup 2000), PKCS#1 v1.5 with SHA-512.";
            [rsa] Sh00PssSha256 = $crate::signatures::sh00::Sh00<$crate::signatures::sh00::PssSha256>,
                "sh00-pss-sha256", "SH00", "RSA", Sign,
                "RSA signatures (Shoup 2000), PSS with SHA-256.";
            [rsa] Cks05Sh00 = $crate::coins::cks05_rsa::Cks05Sh00,
                "cks05-sh00", "CKS05", "RSA", Coin,
                "Coin from an RSA signature: whoever has the public key can verify it.";
            [frost] FrostRistretto255 =
                $crate::signatures::frost::Frost<$crate::signatures::frost::Ristretto255Sha512>,
                "frost-ristretto255", "FROST", "ristretto255", Sign,
                "Schnorr signatures in two rounds (RFC 9591) on ristretto255.";
            [frost] FrostEd25519 = $crate::signatures::frost::Frost<$crate::signatures::frost::Ed25519Sha512>,
                "frost-ed25519", "FROST", "ed25519", Sign,
                "Ed25519 signatures (RFC 8032) in two rounds (RFC 9591).";
            [frost] FrostEd448 = $crate::signatures::frost::Frost<$crate::signatures::frost::Ed448Shake256>,
                "frost-ed448", "FROST", "ed448", Sign,
                "Ed448 signatures (RFC 8032) in two rounds (RFC 9591).";
            [frost] FrostP256 = $crate::signatures::frost::Frost<$crate::signatures::frost::P256Sha256>,
                "frost-p256", "FROST", "p256", Sign,
                "Schnorr signatures in two rounds (RFC 9591) on P-256.";
            [frost] FrostSecp256k1 =
                $crate::signatures::frost::Frost<$crate::signatures::frost::Secp256k1Sha256>,
                "frost-secp256k1", "FROST", "secp256k1", Sign,
                "Schnorr signatures in two rounds (RFC 9591) on secp256k1.";
            [frost] FrostSecp256k1Tr =
                $crate::signatures::frost::Frost<$crate::signatures::frost::Secp256k1Taproot>,
                "frost-secp256k1-tr", "FROST", "secp256k1", Sign,
                "Taproot signatures (BIP-340, BIP-341) in two rounds (as RFC 9591).";
            [ecdsa] EcdsaP256 = $crate::signatures::ecdsa::Ecdsa<$crate::signatures::ecdsa::P256Sha256>,
                "ecdsa-p256", "ECDSA", "p256", Sign,
                "ECDSA signatures (FIPS 186-5) on P-256 with SHA-256, of an honest majority or a dishonest one.";
            [ecdsa] EcdsaSecp256k1 =
                $crate::signatures::ecdsa::Ecdsa<$crate::signatures::ecdsa::Secp256k1Sha256>,
                "ecdsa-secp256k1", "ECDSA", "secp256k1", Sign,
                "ECDSA signatures on secp256k1 with SHA-256 and low s, of an honest majority or a dishonest one.";
        }
    };
}
